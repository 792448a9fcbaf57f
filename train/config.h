// Config: everything that one run is made of, read from a TOML file, strictly.
//
// Each struct's visit() is the one declaration of its fields: it serves reading, --set, explain, the resolved copy and the copy
// in checkpoints. Field meanings stand in the help strings.
//
// All functions throw Error (kUsage): "[config] file:line:column: what was expected, what came", or "[config] --set key=value:
// ...", with a hint where one key or value was likely meant.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/visit.h"
#include "layers/gpt_config.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "train/zipf_config.h"

namespace rowan {

struct DataConfig {
  std::vector<std::string> train;  // text or prepared token files, or one "builtin:sort" or "builtin:zipf"
  std::vector<std::string> val;
  double val_fraction = 0.1;
  std::string tokenizer = "char";
  int64_t seq_len = 64;
  int64_t batch_size = 12;
  std::string order = "shuffled";
  ZipfConfig zipf;  // [data.zipf]

  void visit(FieldVisitor& v) {
    v("train", train, "path or list of paths: text files or prepared token files; or \"builtin:sort\" or \"builtin:zipf\"");
    v("val", val, "validation path(s); \"\" takes the last val_fraction of train");
    v("val_fraction", val_fraction, "share of train, at its end, that validates when val is \"\"", from_below(0, 1));
    v("tokenizer", tokenizer, "char: one id per Unicode character of train; byte: 256 ids; or the path of a saved tokenizer");
    v("seq_len", seq_len, "tokens in a sequence (T)", between(1, 1 << 24));
    v("batch_size", batch_size, "sequences in a micro-batch (B)", between(1, 1 << 20));
    v("order", order, "shuffled: every block once an epoch, order from the seed; random: any offset; sequential",
      one_of({"shuffled", "random", "sequential"}));
  }
};

// A loss far above those of the last steps. Judged before the update.
struct SpikeConfig {
  int64_t window = 0;
  double z = 6;
  std::string action = "skip";

  void visit(FieldVisitor& v) {
    v("window", window, "steps whose losses a new one is compared with, once there are that many (0: off)", between(0, 1 << 20));
    v("z", z, "standard deviations above their mean that make a spike (a deviation counts as 0.1 % of the mean at least)",
      above(0));
    v("action", action, "skip: leave the batch out; rewind: as train.on_nonfinite; stop: exit code 3; warn: say so and go on",
      one_of({"skip", "rewind", "stop", "warn"}));
  }
};

// What train.loss = "sampled" draws: core/ops/sampled_softmax.h, core/negative_sampler.h.
struct SampledConfig {
  std::string sampler = "log_uniform";
  int64_t negatives = 1024;

  void visit(FieldVisitor& v) {
    v("sampler", sampler,
      "log_uniform: Zipf's law, for ids by falling frequency; unigram: by how often each is a target in the training data, plus "
      "one; "
      "uniform",
      one_of({"log_uniform", "unigram", "uniform"}));
    v("negatives", negatives, "classes drawn for each micro-batch, with replacement, shared by its tokens; below the vocabulary",
      at_least(1));
  }
};

struct TrainConfig {
  int64_t steps = 1000;
  int64_t seed = 1;
  int64_t grad_accum = 1;
  double clip_norm = 1;  // 0: no clipping
  double max_minutes = 0;
  int64_t threads = 0;  // 0: the physical cores this process may use
  int64_t eval_every = 0;
  int64_t eval_tokens = 0;
  int64_t log_every = 10;
  int64_t sample_every = 0;
  std::string sample_prompt = "\n";
  bool recompute = false;
  std::string precision = "float32";
  std::string on_nonfinite = "stop";
  std::string loss = "full";
  bool tied_two_source = false;
  int64_t untie_at = 0;
  SampledConfig sampled;  // [train.sampled]
  Schedule schedule;      // [train.schedule]
  SpikeConfig spike;      // [train.spike]

  void visit(FieldVisitor& v) {
    v("steps", steps, "optimizer steps", at_least(0));
    v("max_minutes", max_minutes, "minutes after which the run saves and ends, to be resumed later (0: no limit)", at_least(0));
    v("seed", seed, "seed of initialization, data order and dropout", at_least(0));
    v("grad_accum", grad_accum, "micro-batches in a step; gradients are the token-weighted mean over all of them",
      between(1, 1 << 20));
    v("clip_norm", clip_norm, "largest global 2-norm of the gradient (0: no clipping)", at_least(0));
    v("threads", threads, "threads (0: the physical cores this process may use); results do not depend on it", between(0, 1024));
    v("eval_every", eval_every, "steps between evaluations (0: only at the end)", at_least(0));
    v("eval_tokens", eval_tokens, "tokens of the split to evaluate (0: the whole split)", at_least(0));
    v("log_every", log_every, "steps between lines of metrics.jsonl", at_least(1));
    v("sample_every", sample_every, "steps between samples of text (0: none)", at_least(0));
    v("sample_prompt", sample_prompt, "what those samples continue");
    v("recompute", recompute,
      "keep one tensor a block for the backward pass and compute the rest again: less memory, same results");
    v("precision", precision,
      "what matrix products of training steps multiply: float32, or bf16 where the processor has it (operands rounded; sums, "
      "weights and optimizer state stay float32)",
      one_of({"float32", "bf16"}));
    v("on_nonfinite", on_nonfinite,
      "a loss or gradient that is not finite: stop, exit code 3; skip: leave the batch out; rewind: go on from the last checkpoint "
      "on the grid of checkpoint.every, with the data after that batch",
      one_of({"stop", "skip", "rewind"}));
    v("loss", loss,
      "full: softmax over the vocabulary; sampled: over the target and a few drawn classes, which makes an untied head row-sparse "
      "(evaluation is always full)",
      one_of({"full", "sampled"}));
    v("tied_two_source", tied_two_source,
      "a tied table is updated from its two gradients apart, each with optimizer state of its own: the lookup's as "
      "embed.tokens.weight, the softmax's as head.weight, which takes the weight decay; clip_norm then bounds the norm of the two "
      "side by side");
    v("untie_at", untie_at,
      "a tied head is untied after this step: head.weight begins as a copy of the table, its moments and its counter (0: never)",
      at_least(0));
  }
};

struct CheckpointConfig {
  int64_t every = 0;
  double every_minutes = 0;
  int64_t keep_last = 3;
  bool keep_best = true;
  bool background = false;

  void visit(FieldVisitor& v) {
    v("every", every, "steps between checkpoints (0: only at the end)", at_least(0));
    v("every_minutes", every_minutes, "minutes between checkpoints (0: off)", at_least(0));
    v("keep_last", keep_last, "checkpoints to keep besides best.h5", at_least(1));
    v("keep_best", keep_best, "keep best.h5, the state with the lowest validation loss");
    v("background", background, "train on while a checkpoint is written; costs one copy of the state in memory");
  }
};

// [optim] and [[optim.group]]: the fields below, and those of the rule's own visit(). A group has `params` besides. A group that
// names no rule uses [optim]'s, and its values for what it does not set itself; one that names a rule starts from that rule's
// defaults.
struct OptimGroupConfig {
  static constexpr const char* kParamsHelp =
      "glob over parameter names, e.g. \"embed.*\"; the first group that matches takes a parameter";

  std::string params = "*";  // glob over parameter names
  std::string rule = "adamw";
  std::shared_ptr<Optimizer> optimizer;  // of that rule, with its fields set

  void visit(FieldVisitor& v) { v("rule", rule, "the optimizer; its other fields depend on it", one_of(optimizer_rules())); }
};

struct Config {
  GptConfig model;
  DataConfig data;
  TrainConfig train;
  CheckpointConfig checkpoint;
  std::vector<OptimGroupConfig> groups;  // in the order of the file
  OptimGroupConfig optim;                // takes what no group matches

  std::string name;  // names the run and its directory
  // Where each field's value came from, by its full key ("model.d_model", "optim.group.0.lr"): "default", "[optim]",
  // "<file>:<line>" or "command line".
  std::map<std::string, std::string> origin;

  void visit(FieldVisitor& v) { v("name", name, "names the run and its directory (the file's name without folder and ending)"); }
};

// What the settings say about the model in the state after `step` steps: untied from train.untie_at on.
inline bool untied_by(const Config& config, int64_t step) {
  return !config.model.tied || (config.train.untie_at > 0 && step >= config.train.untie_at);
}
inline GptConfig model_at(const Config& config, int64_t step) {
  GptConfig model = config.model;
  model.tied = !untied_by(config, step);
  return model;
}
inline HeadGrads head_grads_at(const Config& config, int64_t step) {
  if (!untied_by(config, step)) return config.train.tied_two_source ? HeadGrads::kTwoSource : HeadGrads::kDense;
  return config.train.loss == "sampled" ? HeadGrads::kRowSparse : HeadGrads::kDense;
}

// Reads a config. `overrides` are those of --set: "train.steps=100", "optim.group.0.lr=1e-3" (or group[0]; the number after the
// last group adds one). An override's text is typed by the field: strings need no quotes, lists are separated by commas; a value
// in TOML's own quotes or brackets is read as TOML. Aliases of the field's common names are accepted in [model]. A copy that
// resolved_toml() wrote is a config like any other. Calls validate().
Config load_config(const std::string& path, const std::vector<std::string>& overrides = {});
// The same from text; `name` stands for the file in messages, and gives the run's name when the text has none.
Config parse_config(const std::string& text, const std::string& name, const std::vector<std::string>& overrides = {});

// Checks what one field alone can't tell: sizes that don't fit each other, rules that can't serve a parameter. Files are not
// looked at.
void validate(const Config& config);

// Settings that would change nothing in a run from its first step to train.steps: untouched = "frozen" for a tied table, whose rows
// are all touched in every step; [train.sampled] without train.loss = "sampled"; clip_bound without clip. Only values that are not
// the defaults count. `keys`: the setting, then what makes it idle.
struct IdleSetting {
  std::vector<std::string> keys;
  std::string what, hint;
  // Refused, since who writes it believes that it does something. Otherwise it is only said: a config keeps such values for the day
  // when its switch is turned, train.schedule.min_ratio beside kind = "constant".
  bool refused = true;
};
std::vector<IdleSetting> idle_settings(const Config& config);
// Error for the first one that is refused, and for a group that takes no parameter. For new runs: a run that goes on, perhaps for
// fewer steps, keeps the config that it has.
void check_no_idle_settings(const Config& config);

// Every field with its value and, as a comment, where that came from. Reads back to the same config.
std::string resolved_toml(const Config& config);
inline constexpr std::string_view kResolvedHead =  // how that begins
    "# Every setting of this run, its value, and where that came from.\n";

struct ConfigChange {
  std::string key;
  std::string before;  // as TOML; "" when the config has no such field (another rule, fewer groups)
  std::string after;
  std::string note;  // what the change means for a run that goes on; "" when there is nothing to say
};
// Fields that differ, in the order of declaration. Where a value came from does not count.
std::vector<ConfigChange> config_diff(const Config& before, const Config& after);

// The changes with which a saved run may go on: steps, logging, evaluation, checkpoint policy, threads, and data paths (whose
// content the caller must compare). Throws Error naming every other change and why it is refused.
std::vector<ConfigChange> check_resume_changes(const Config& saved, const Config& wanted);

// What `rowan config explain` prints. `key` is a field ("model.d_model", or "d_model" for that of every table), a table
// ("train.schedule"), "optim", "optim.<rule>" or "optim.<rule>.<field>": type, limits, default, meaning and aliases of the fields.
// "" is an overview: every table and field, one line each.
std::string explain_config(const std::string& key);
std::string explain_everything();  // all tables and rules in full

}  // namespace rowan
