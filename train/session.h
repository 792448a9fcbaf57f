// TrainSession: everything in memory that one run consists of, and the training step. What it holds is what a checkpoint keeps;
// files, clocks and the terminal are the Trainer's.
//
// The whole state is a function of (config, data, step): random numbers are counter-based, the learning rate is computed from the
// step, the data order from the loader's position. So train 2n steps, or train n, save, load, and train n more: the same bits.
#pragma once

#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "layers/gpt.h"
#include "optim/groups.h"
#include "train/checkpoint.h"
#include "train/config.h"
#include "train/corpus.h"
#include "train/data_loader.h"
#include "train/loss_guard.h"
#include "train/sampled_loss.h"

namespace rowan {

struct ParameterNorms {
  std::string name;
  double weight = 0, gradient = 0;  // 2-norms
  bool operator==(const ParameterNorms&) const = default;
};

struct StepResult {
  bool finite = true;
  bool spike = false;    // the loss is a spike that is not to be learned from
  std::string what;      // when nothing was updated: "the loss is nan", "the gradient of blocks.0.attn.qkv.weight is not finite"
  std::string warning;   // a spike with action "warn"
  double loss = 0;       // token-weighted mean over all micro-batches, before the update
  double grad_norm = 0;  // before clipping
  double lr = 0;         // of [optim], with the schedule's factor
  int64_t tokens = 0;    // inputs read in this step
  std::map<std::string, UpdateReport> updates = {};  // by row-sparse parameter
  int64_t position = 0;                              // of the loader, before the step
  std::vector<int64_t> samples = {};                 // the examples, in order
  std::vector<ParameterNorms> norms = {};            // when nothing was updated

  bool updated() const { return finite && !spike; }
};

// Sees the weights on both sides of an update, and changes nothing.
class UpdateObserver {
 public:
  virtual ~UpdateObserver() = default;
  // Gradients are there, and rows that lagged behind have caught up as far as these batches read them.
  virtual void before_update(int64_t step, const std::vector<Batch>& batches) = 0;
  virtual void after_update(int64_t step, double lr_factor) = 0;  // not called when nothing was updated
};

class TrainSession {
 public:
  // A new run. Opens the data, makes the model and the optimizers' state. Errors come before anything is written anywhere.
  explicit TrainSession(const Config& config);
  // A run that goes on: the tokenizer of the checkpoint instead of a new one. load() follows.
  TrainSession(const Config& config, std::shared_ptr<const Tokenizer> tokenizer);

  // One optimizer step: forward and backward over grad_accum micro-batches, clipping, update. When the loss or the gradient is
  // not finite, or the loss a spike, nothing is changed but the loader's position, `step` does not advance, and the result says
  // what was wrong.
  StepResult step();

  void observe(UpdateObserver* observer) { observer_ = observer; }  // nullptr: nobody; it must outlive the steps that follow

  // The first parameter, or state of its optimizer, with an element that is not finite; "" when there is none.
  std::string find_non_finite() const;

  // After a step without update. Count it; false when that was the last one allowed: kMostSkips without an update between them,
  // or kMostRewinds without getting past the step that failed.
  bool count_skip();
  bool count_rewind();
  // The state of an earlier checkpoint of this run, but for the loader: it goes on after the data that it has read.
  void rewind_to(Checkpoint& checkpoint);

  void save(CheckpointWriter& writer);
  void load(Checkpoint& checkpoint);  // strict: one Error lists all that does not fit

  // The machine that wrote the checkpoint that load() read; "" when that does not say. On another one results may differ in their
  // last bits from those of a run that never moved.
  const std::string& saved_machine() const { return saved_machine_; }
  // What it did with denormal numbers (train/versions.h). A checkpoint that does not say comes from a version that flushed them.
  const std::string& saved_denormals() const { return saved_denormals_; }

  const Config& config() const { return config_; }
  const Corpus& corpus() const { return corpus_; }
  Gpt& model() {  // with no row behind: optim/optimizer.h, flush()
    optimizers_->flush();
    return *model_;
  }
  const Tensor& token_table() const { return model_->token_table().value(); }  // as it is: rows may lag behind
  OptimizerSet& optimizers() { return *optimizers_; }
  DataLoader& loader() { return *loader_; }
  int64_t steps_done() const { return step_; }
  int64_t tokens_done() const { return tokens_; }

  // The lowest validation loss at an evaluation so far; it decides what best.h5 holds, not how training goes on.
  double best_loss = std::numeric_limits<double>::infinity();
  int64_t best_step = 0;

 private:
  void build(int64_t step);  // model and optimizers, as the config has them after that step
  void untie();
  Pass training_pass(int64_t micro_batch) const;
  Variable batch_loss(const Batch& batch, double scale, const Pass& pass, HeadStats& stats);
  void catch_up_rows(const Ids& inputs);
  std::vector<Batch> next_batches();
  void accumulate(const std::vector<Batch>& batches, StepResult& result);
  StepResult discard(StepResult result, const std::string& what);

  Config config_;  // vocab_size and the like filled in
  Corpus corpus_;
  std::unique_ptr<Gpt> model_;
  std::unique_ptr<OptimizerSet> optimizers_;
  std::unique_ptr<DataLoader> loader_;
  std::optional<NegativeSampler> sampler_;  // with train.loss = "sampled"
  LossGuard guard_;
  UpdateObserver* observer_ = nullptr;
  int64_t step_ = 0, tokens_ = 0;
  std::string saved_machine_, saved_denormals_;
};

// A model's parameters under their names, as optim takes them (a head that shares the table's weights is one of them), and the
// rules that a config gives them. The model must outlive both.
std::vector<NamedParameter> named_parameters(Gpt& model);
std::unique_ptr<OptimizerSet> make_optimizers(const Config& config, Gpt& model);

CheckpointImage make_image(TrainSession& session);

// What evaluation and sampling need of a checkpoint.
struct LoadedModel {
  Config config;  // with the model as it is at that step: model_at()
  std::shared_ptr<const Tokenizer> tokenizer;
  std::unique_ptr<Gpt> model;
  int64_t step = 0;
};
LoadedModel load_model(Checkpoint& checkpoint);

std::shared_ptr<const Tokenizer> checkpoint_tokenizer(const Checkpoint& checkpoint);
// Error (kData) also when the file is too small to hold the model that its config describes.
Config checkpoint_config(const Checkpoint& checkpoint);

}  // namespace rowan
