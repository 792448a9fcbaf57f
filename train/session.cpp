#include "train/session.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "core/kernels/reduce.h"
#include "layers/parameter_specs.h"
#include "optim/settings.h"
#include "train/checkpoint_state.h"
#include "train/config_fields.h"
#include "train/counters.h"
#include "train/precision.h"
#include "train/untie.h"
#include "train/versions.h"

namespace rowan {
namespace {

Config with_vocabulary(Config config, const Tokenizer& tokenizer) {
  int64_t& v = config.model.vocab_size;
  if (v == 0) v = tokenizer.vocab_size();
  ROWAN_CHECK(v >= tokenizer.vocab_size(), "[model] vocab_size is ", v, ", but the tokenizer has ", tokenizer.vocab_size(), " ids");
  config.model.resolve();
  return config;
}

// The same rules and settings without any state.
OptimGroupConfig fresh(const OptimGroupConfig& group) {
  OptimGroupConfig copy = group;
  copy.optimizer = make_optimizer(group.optimizer->rule());
  read_settings(*copy.optimizer, write_settings(settings_of(*group.optimizer)));
  return copy;
}

int64_t count_targets(const std::vector<Batch>& batches) {
  int64_t counted = 0;
  for (const Batch& b : batches)
    for (int32_t t : b.targets.values()) counted += t != kIgnored;
  return counted;
}

// The sign of a NaN says nothing, and differs between machines.
std::string non_finite_text(double value) {
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

uint64_t unsigned_seed(const Config& config) {
  return static_cast<uint64_t>(config.train.seed);
}

}  // namespace

TrainSession::TrainSession(const Config& config) : TrainSession(config, nullptr) {}

TrainSession::TrainSession(const Config& config, std::shared_ptr<const Tokenizer> tokenizer)
    : corpus_(open_corpus(config.data, std::move(tokenizer))), guard_(config.train.spike.window, config.train.spike.z) {
  training_precision(config);  // refused before any work
  config_ = with_vocabulary(config, *corpus_.tokenizer);
  loader_ =
      std::make_unique<DataLoader>(corpus_.train, config_.data.batch_size, data_order(config_.data.order), unsigned_seed(config_));
  sampler_ = make_negative_sampler(config_, corpus_.train);
  build(0);
}

// Optimizers of its own, without state: those of a config are shared by all its copies, and live as long as the last of them.
void TrainSession::build(int64_t step) {
  config_.optim = fresh(config_.optim);
  for (OptimGroupConfig& group : config_.groups) group = fresh(group);
  model_ = std::make_unique<Gpt>(model_at(config_, step), unsigned_seed(config_), head_grads_at(config_, step));
  optimizers_ = make_optimizers(config_, *model_);
}

void TrainSession::untie() {
  optimizers_->flush();
  const std::unique_ptr<Gpt> tied = std::move(model_);
  const std::unique_ptr<OptimizerSet> before = std::move(optimizers_);
  build(step_);
  move_weights(*tied, *model_);
  copy_optimizer_state(*before, *optimizers_);
}

Pass TrainSession::training_pass(int64_t micro_batch) const {
  const auto number = static_cast<uint64_t>(step_ * config_.train.grad_accum + micro_batch);
  return {.training = true,
          .dropout = config_.model.dropout,
          .key = {.seed = unsigned_seed(config_), .step = number},
          .recompute = config_.train.recompute};
}

void TrainSession::accumulate(const std::vector<Batch>& batches, StepResult& result) {
  const UseMatmulPrecision precision(training_precision(config_));
  const int64_t counted = count_targets(batches);
  // Every micro-batch is weighed by its share of the step's counted targets, so a step does not depend on how it is cut.
  const double scale = counted == 0 ? 0.0 : 1.0 / static_cast<double>(counted);
  for (size_t i = 0; i < batches.size(); ++i) {
    catch_up_rows(batches[i].inputs);
    HeadStats stats;
    const Variable loss = batch_loss(batches[i], scale, training_pass(static_cast<int64_t>(i)), stats);
    result.loss += scale * stats.loss_sum;
    result.tokens += batches[i].inputs.size();
    result.samples.insert(result.samples.end(), batches[i].starts.begin(), batches[i].starts.end());
    if (std::isfinite(result.loss)) backward(loss);
  }
}

StepResult TrainSession::discard(StepResult result, const std::string& what) {
  optimizers_->flush();  // the norms are those of a state that a checkpoint would hold
  for (const NamedParameter& p : optimizers_->parameters()) {
    const Tensor& value = p.parameter->value();
    result.norms.push_back(
        {p.name, std::sqrt(parallel_sum_of_squares(value.data(), value.size())), global_grad_norm(std::span(&p, 1)).norm});
    p.parameter->var.clear_grad();
  }
  result.what = what;
  return result;
}

// When one can't be read, the loader stands where it stood.
std::vector<Batch> TrainSession::next_batches() {
  const int64_t position = loader_->position();
  std::vector<Batch> batches;
  try {
    for (int64_t i = 0; i < config_.train.grad_accum; ++i) batches.push_back(loader_->next());
  } catch (const Error&) {
    loader_->seek(position);
    throw;
  }
  return batches;
}

StepResult TrainSession::step() {
  StepResult result;
  result.position = loader_->position();
  const std::vector<Batch> batches = next_batches();
  accumulate(batches, result);
  result.finite = std::isfinite(result.loss);
  if (!result.finite) return discard(result, "the loss is " + non_finite_text(result.loss));
  if (const std::string spike = guard_.judge(result.loss); !spike.empty()) {
    result.spike = config_.train.spike.action != "warn";
    if (result.spike) return discard(result, spike);
    result.warning = spike;
  }
  const double factor = config_.train.schedule.factor(step_ + 1, config_.train.steps);
  result.lr = config_.optim.optimizer->lr() * factor;
  if (observer_ != nullptr) observer_->before_update(step_ + 1, batches);
  const GradNorm norm = optimizers_->clip_and_step(config_.train.clip_norm, {.step = step_ + 1, .lr_factor = factor});
  result.grad_norm = norm.norm;
  result.finite = norm.finite;
  if (!norm.finite) return discard(result, "the gradient of " + norm.non_finite + " is not finite");
  for (const NamedParameter& p : optimizers_->parameters())
    if (p.parameter->kind() == GradKind::kRowSparse) result.updates[p.name] = optimizers_->last_update(p.name);
  ++step_;
  tokens_ += result.tokens;
  if (observer_ != nullptr) observer_->after_update(step_, factor);
  guard_.accept(result.loss);
  if (config_.model.tied && step_ == config_.train.untie_at) untie();
  return result;
}

Variable TrainSession::batch_loss(const Batch& batch, double scale, const Pass& pass, HeadStats& stats) {
  if (!sampler_) return model_->loss(batch.inputs, batch.targets, scale, pass, &stats);
  const Negatives drawn = sampler_->draw(config_.train.sampled.negatives, negatives_key(config_, pass.key.step));
  std::vector<int32_t> read = drawn.ids;
  std::copy_if(batch.targets.values().begin(), batch.targets.values().end(), std::back_inserter(read),
               [](int32_t target) { return target != kIgnored; });
  optimizers_->catch_up("head.weight", read);
  return model_->sampled_loss(batch.inputs, batch.targets, drawn, scale, pass, &stats);
}

// Rows whose optimizer lets them lag behind make up what they missed before the forward pass reads them.
void TrainSession::catch_up_rows(const Ids& inputs) {
  optimizers_->catch_up("embed.tokens.weight", inputs.values());
  if (config_.model.positions != "learned") return;
  std::vector<int32_t> positions(static_cast<size_t>(inputs.shape().back()));
  std::iota(positions.begin(), positions.end(), 0);
  optimizers_->catch_up("embed.positions.weight", positions);
}

bool TrainSession::count_skip() {
  return guard_.count_skip();
}
bool TrainSession::count_rewind() {
  return guard_.count_rewind(step_ + 1);
}

void TrainSession::rewind_to(Checkpoint& checkpoint) {
  const int64_t position = loader_->position();
  const LossGuard::Counts counts = guard_.counts();
  const std::pair best{best_loss, best_step};  // best.h5 stays
  optimizers_->flush();                        // no row is behind when its state is replaced
  load(checkpoint);
  loader_->seek(position);
  guard_.set_counts(counts);
  std::tie(best_loss, best_step) = best;
}

namespace {

// The first array of floats with an element that is not finite.
class FindNonFinite final : public StateVisitor {
 public:
  bool loading() const override { return false; }
  void operator()(const std::string& name, Tensor& value) override { look(name, value.data(), value.size()); }
  void operator()(const std::string&, int64_t&) override {}
  void operator()(const std::string& name, double& value) override { look(name, &value, 1); }
  void operator()(const std::string&, std::vector<int32_t>&) override {}
  void operator()(const std::string&, std::vector<int64_t>&) override {}
  void operator()(const std::string& name, std::vector<double>& value) override { look(name, value.data(), std::ssize(value)); }
  void operator()(const std::string&, std::vector<uint8_t>&) override {}
  const std::string& found() const { return found_; }

 private:
  template <class T>
  void look(const std::string& name, const T* data, int64_t size) {
    if (found_.empty() && !std::all_of(data, data + size, [](T x) { return std::isfinite(x); })) found_ = name;
  }
  std::string found_;
};

}  // namespace

std::string TrainSession::find_non_finite() const {
  optimizers_->flush();
  for (const NamedParameter& p : optimizers_->parameters()) {
    const Tensor& value = p.parameter->value();
    if (std::isfinite(parallel_sum_of_squares(value.data(), value.size()))) continue;
    const bool finite = std::all_of(value.data(), value.data() + value.size(), [](Real x) { return std::isfinite(x); });
    if (!finite) return p.name;  // else only the squares overflow
  }
  FindNonFinite state;
  optimizers_->visit_state(state);
  return state.found();
}

void TrainSession::save(CheckpointWriter& writer) {
  optimizers_->flush();
  writer.add_text("/config", resolved_toml(config_));
  writer.add_text("/tokenizer/json", corpus_.tokenizer->serialize());
  writer.add_text("/train/machine", machine_text());
  writer.add_text("/train/denormals", denormals_text());
  writer.add("/train/step", step_);
  writer.add("/train/tokens", tokens_);
  writer.add("/train/best_loss", best_loss);
  writer.add("/train/best_step", best_step);
  writer.add("/rng/seed", config_.train.seed);
  save_parameters(writer, *model_);
  SaveVisitor optim(writer, "/optim"), loader(writer, "/loader");
  optimizers_->visit_state(optim);
  loader_->visit_state(loader);
  if (guard_.is_new()) return;  // a run that nothing ever happened to has no such entries
  SaveVisitor guard(writer, "/train/guard");
  guard_.visit_state(guard);
}

void TrainSession::load(Checkpoint& checkpoint) {
  if (!checkpoint.info().complete)
    throw Error(
        "[checkpoint] '" + checkpoint.path() + "' holds weights only: the state of training that a run goes on from is not in it",
        ErrorKind::kData, "rowan eval and rowan sample take it; resume needs a checkpoint of the run itself");
  int64_t seed = config_.train.seed;
  checkpoint.skip("/config");
  checkpoint.skip("/tokenizer/json");
  if (checkpoint.contains("/train/machine")) checkpoint.take_text("/train/machine", saved_machine_);
  saved_denormals_ = kDenormalsFlushed;
  if (checkpoint.contains("/train/denormals")) checkpoint.take_text("/train/denormals", saved_denormals_);
  checkpoint.take("/train/step", step_);
  if (untied_by(config_, step_) == model_->config().tied) build(step_);
  checkpoint.take("/train/tokens", tokens_);
  checkpoint.take("/train/best_loss", best_loss);
  checkpoint.take("/train/best_step", best_step);
  checkpoint.take("/rng/seed", seed);
  load_parameters(checkpoint, *model_);
  LoadVisitor optim(checkpoint, "/optim"), loader(checkpoint, "/loader");
  optimizers_->visit_state(optim);
  try {
    loader_->visit_state(loader);
  } catch (const Error& e) {
    throw Error(join_text(e.what(), "; data.train = ", toml_text(config_.data.train)), e.kind(), e.hint());
  }
  guard_.reset();
  if (checkpoint.contains("/train/guard/skips")) {
    LoadVisitor guard(checkpoint, "/train/guard");
    guard_.visit_state(guard);
  }
  checkpoint.finish();
  for (const auto& [name, count] : {std::pair{"step", step_}, {"tokens", tokens_}})
    if (count < 0 || count > kLargestCount) fail_data("[resume] /train/", name, " in '", checkpoint.path(), "' is ", count);
  ROWAN_CHECK(seed == config_.train.seed, "[resume] the checkpoint was made with train.seed = ", seed, ", not ",
              config_.train.seed);
}

std::vector<NamedParameter> named_parameters(Gpt& model) {
  std::vector<NamedParameter> out;
  for_each_parameter(model, [&](const std::string& name, Parameter& p) { out.push_back({name, &p}); });
  if (Parameter* head = model.shared_head()) out.push_back({"head.weight", head});
  return out;
}

std::unique_ptr<OptimizerSet> make_optimizers(const Config& config, Gpt& model) {
  std::vector<ParameterGroup> groups;
  for (const OptimGroupConfig& g : config.groups) groups.push_back({g.params, g.optimizer});
  std::vector<std::string> later;
  if (model.config().tied && config.train.untie_at > 0) later.emplace_back("head.weight");
  return std::make_unique<OptimizerSet>(groups, config.optim.optimizer, named_parameters(model), later);
}

CheckpointImage make_image(TrainSession& session) {
  CheckpointWriter writer;
  session.save(writer);
  return writer.build({});
}

namespace {

// Before memory is taken for a model: its parameters must be able to stand in the file that describes it.
void check_size(const Checkpoint& checkpoint, const GptConfig& model) {
  int64_t elements = 0;
  for (const ParameterSpec& p : parameter_specs(model)) {
    if (p.shared) continue;
    elements += p.shape.size();
    if (elements > checkpoint.file_bytes() / static_cast<int64_t>(sizeof(float)))
      fail_data("[checkpoint] /config in '", checkpoint.path(), "' describes a model whose parameters, up to ", p.name, ", are ",
                elements, " numbers; the file has ", checkpoint.file_bytes(), " bytes");
  }
}

}  // namespace

std::shared_ptr<const Tokenizer> checkpoint_tokenizer(const Checkpoint& checkpoint) {
  return Tokenizer::deserialize(checkpoint.text("/tokenizer/json"), checkpoint.path());
}

Config checkpoint_config(const Checkpoint& checkpoint) {
  Config config = parse_config(checkpoint.text("/config"), checkpoint.path());
  check_size(checkpoint, config.model);
  return config;
}

LoadedModel load_model(Checkpoint& checkpoint) {
  LoadedModel loaded;
  loaded.config = checkpoint_config(checkpoint);
  loaded.tokenizer = checkpoint_tokenizer(checkpoint);
  loaded.step = checkpoint.integer("/train/step");
  loaded.config.model = model_at(loaded.config, loaded.step);
  loaded.model = std::make_unique<Gpt>(loaded.config.model, 0);
  load_parameters(checkpoint, *loaded.model);
  checkpoint.finish({"/model"});
  return loaded;
}

}  // namespace rowan
