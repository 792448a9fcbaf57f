// What one field alone can't tell. Every message names the fields, their values, and where those came from.
#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "layers/parameter_specs.h"
#include "optim/groups.h"
#include "optim/planned_state.h"
#include "optim/row_optimizer.h"
#include "train/builtin_data.h"
#include "train/config.h"
#include "train/config_document.h"
#include "train/config_fields.h"
#include "train/config_reader.h"
#include "train/config_validate.h"
#include "train/sampled_loss.h"

namespace rowan {
namespace {

// "kjv.toml:4, command line: ", or "" for a config that was built by a program.
std::string origins(const Config& config, const std::vector<std::string>& keys) {
  std::string text;
  for (const std::string& key : keys) {
    const auto it = config.origin.find(key);
    if (it == config.origin.end() || it->second == "default" || text.find(it->second) != std::string::npos) continue;
    text += (text.empty() ? "" : ", ") + it->second;
  }
  return text.empty() ? text : text + ": ";
}

}  // namespace

void fail_keys(const Config& config, const std::vector<std::string>& keys, const std::string& message, const std::string& hint) {
  throw Error("[config] " + origins(config, keys) + message, ErrorKind::kUsage, hint);
}

bool names_a_directory(const std::string& name) {
  const bool control = escape_controls(name) != name;
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos && !control && is_utf8(name);
}

std::pair<const OptimGroupConfig*, std::string> group_of(const Config& config, const std::string& parameter) {
  for (size_t i = 0; i < config.groups.size(); ++i) {
    if (glob_matches(config.groups[i].params, parameter)) return {&config.groups[i], fmt::format("optim.group.{}", i)};
  }
  return {&config.optim, "optim"};
}

namespace {

void check_name(const Config& config) {
  if (!names_a_directory(config.name)) fail_keys(config, {"name"}, kDirectoryName, "set name = \"...\" at the top of the config");
}

void check_model(const Config& config) {
  const auto problem = config.model.find_problem();
  if (!problem) return;
  std::vector<std::string> keys;
  for (const std::string& field : problem->fields) keys.push_back("model." + field);
  fail_keys(config, keys, "model: " + problem->what, problem->hint);
}

void check_lengths(const Config& config) {
  const int64_t length = config.data.seq_len;
  const int64_t positions = config.model.max_seq_len;
  if (config.model.positions == "learned" && length > positions) {
    fail_keys(
        config, {"data.seq_len", "model.max_seq_len"},
        fmt::format("data.seq_len = {} is longer than model.max_seq_len = {}: learned positions have one row for each position",
                    length, positions),
        fmt::format("set model.max_seq_len = {}", length));
  }
  constexpr int64_t kMaxTokens = int64_t{1} << 31;
  if (length * config.data.batch_size >= kMaxTokens) {
    fail_keys(config, {"data.seq_len", "data.batch_size"},
              fmt::format("a micro-batch of data.batch_size = {} sequences of data.seq_len = {} tokens has 2^31 tokens or more",
                          config.data.batch_size, length));
  }
}

// Built-in data brings its own tokenizer, length and validation.
void check_builtin(const Config& config) {
  const std::vector<std::string>& train = config.data.train;
  if (std::none_of(train.begin(), train.end(), is_builtin)) return;
  if (train.size() > 1 || !config.data.val.empty()) {
    fail_keys(config, {"data.train", "data.val"},
              "built-in data stands alone: data.train names it and nothing else, and data.val is \"\"");
  }
  try {
    make_builtin(train[0], config.data);
  } catch (const Error& e) {
    fail_keys(config, {"data.train", "data.seq_len", "data.order"}, message_of(e), e.hint());
  }
}

void check_validation(const Config& config) {
  const bool builtin = !builtin_of(config.data).empty();
  if (builtin || !config.data.val.empty() || config.data.val_fraction > 0 || config.train.eval_every == 0) return;
  fail_keys(config, {"train.eval_every", "data.val_fraction"},
            fmt::format("train.eval_every = {} asks for evaluation, but data.val is empty and data.val_fraction is 0: nothing is "
                        "left to evaluate on",
                        config.train.eval_every));
}

void check_schedule(const Config& config) {
  const Schedule& schedule = config.train.schedule;
  const bool has_end = schedule.kind == "cosine" || schedule.kind == "linear";
  if (!has_end || schedule.decay_steps == 0 || schedule.decay_steps > schedule.warmup) return;
  fail_keys(
      config, {"train.schedule.decay_steps", "train.schedule.warmup"},
      fmt::format("train.schedule.decay_steps = {} is not after train.schedule.warmup = {}: the decay would end before it begins",
                  schedule.decay_steps, schedule.warmup));
}

void check_rewind(const Config& config) {
  const bool spike = config.train.spike.window > 0 && config.train.spike.action == "rewind";
  if (config.checkpoint.every > 0 || (config.train.on_nonfinite != "rewind" && !spike)) return;
  const std::string key = spike ? "train.spike.action" : "train.on_nonfinite";
  fail_keys(config, {key, "checkpoint.every"},
            key + " = \"rewind\" goes back to the last multiple of checkpoint.every, which is 0: there is nothing to go back to",
            "set checkpoint.every");
}

void check_tied_table(const Config& config) {
  const auto [group, path] = group_of(config, "embed.tokens.weight");
  if (!config.model.tied || config.train.tied_two_source || !group->optimizer || !group->optimizer->sparse_only()) return;
  fail_keys(config, {path + ".rule", "model.tied"},
            fmt::format("{}.rule = \"{}\" updates only rows that a batch touched, but model.tied = true makes embed.tokens.weight "
                        "the LM head as well, "
                        "and softmax gives every row a gradient",
                        path, group->rule),
            "set model.tied = false or train.tied_two_source = true, or use another rule for embed.tokens.weight");
}

void check_sampled(const Config& config) {
  if (config.train.loss != "sampled") return;
  if (config.model.tied)
    fail_keys(
        config, {"train.loss", "model.tied"},
        "train.loss = \"sampled\" gives a gradient to the rows of the head that it draws, but model.tied = true makes the head "
        "the token table as well, whose rows would then be those of lookups and of draws mixed",
        "set model.tied = false");
  Config known = config;
  if (known.model.vocab_size == 0 && builtin_of(config.data) == "builtin:zipf")
    known.model.vocab_size = config.data.zipf.vocab_size;
  try {
    check_negatives(known);
  } catch (const Error& e) {
    fail_keys(config, {"train.sampled.negatives", "train.loss"}, message_of(e), e.hint());
  }
}

// A table that is updated from two sources, or untied later, has a group for each of the two parameters that it stands for.
void check_two_source(const Config& config) {
  if (!config.train.tied_two_source) return;
  if (!config.model.tied)
    fail_keys(config, {"train.tied_two_source", "model.tied"},
              "train.tied_two_source is for a tied table: with model.tied = false lookup and softmax have parameters of their own",
              "set model.tied = true, or leave train.tied_two_source out");
  const auto [lookup, path] = group_of(config, "embed.tokens.weight");
  const auto [head, head_path] = group_of(config, "head.weight");
  if (!lookup->optimizer || !head->optimizer) return;
  const auto* rows = dynamic_cast<const RowOptimizer*>(lookup->optimizer.get());
  if (rows != nullptr && rows->axes().tracks_rows())
    fail_keys(config, {path + ".untouched", path + ".decay", "train.tied_two_source"},
              path +
                  ": with train.tied_two_source no row of embed.tokens.weight may lag behind (untouched = \"exact\", decay = "
                  "\"deferred\"), since the softmax reads every row in every step",
              "use untouched = \"frozen\" or \"dense\"");
  if (head->optimizer->sparse_only())
    fail_keys(config, {head_path + ".rule", "train.tied_two_source"},
              fmt::format("{}.rule = \"{}\" updates only rows that a batch touched, but the softmax's gradient, which it takes as "
                          "head.weight, is one of every row",
                          head_path, head->rule),
              "give head.weight a group with another rule, such as adamw");
  if (lookup != head && lookup->optimizer->weight_decay() > 0 && head->optimizer->weight_decay() == 0)
    fail_keys(config, {path + ".weight_decay", head_path + ".weight_decay"},
              fmt::format("{}.weight_decay would never be applied: with train.tied_two_source the table's weight decay is that of "
                          "head.weight, which is 0 ({})",
                          path, head_path),
              "set weight_decay for head.weight");
}

void check_untie(const Config& config) {
  if (config.train.untie_at == 0) return;
  if (!config.model.tied)
    fail_keys(config, {"train.untie_at", "model.tied"},
              "train.untie_at unties a head that is tied, but model.tied = false: it never is",
              "set model.tied = true, or leave train.untie_at out");
  const auto [table, path] = group_of(config, "embed.tokens.weight");
  const auto [head, head_path] = group_of(config, "head.weight");
  if (config.train.tied_two_source || !table->optimizer || !head->optimizer) return;
  // Moments can be copied where both keep the same ones: the same rule, with no setting that adds or drops any.
  const Shape probe{3, 5};
  const auto state = [&](const OptimGroupConfig& g) { return g.optimizer->planned_state_bytes(probe, GradKind::kDense); };
  if (table->rule == head->rule && state(*table) == state(*head)) return;
  fail_keys(
      config, {"train.untie_at", path + ".rule", head_path + ".rule"},
      fmt::format("train.untie_at copies the optimizer state of embed.tokens.weight to head.weight, but {} (rule \"{}\") and {} "
                  "(rule \"{}\") keep different state",
                  path, table->rule, head_path, head->rule),
      table->rule == head->rule ? "give both the same counter and the other settings that the state depends on; learning rate and "
                                  "decay may differ"
                                : "give both the same rule; learning rate and decay may differ");
}

}  // namespace

void validate(const Config& config) {
  check_name(config);
  check_model(config);
  check_lengths(config);
  check_builtin(config);
  check_validation(config);
  check_schedule(config);
  check_rewind(config);
  check_tied_table(config);
  check_sampled(config);
  check_two_source(config);
  check_untie(config);
  check_rules(config);
}

}  // namespace rowan
