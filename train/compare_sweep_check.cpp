#include "train/compare_sweep_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "layers/parameter_specs.h"
#include "train/config_reader.h"

namespace rowan {
namespace {

bool has(const std::vector<std::string>& list, const std::string& key) {
  return std::find(list.begin(), list.end(), key) != list.end();
}

template <class Settings>
bool sets(const Settings& settings, const std::string& key) {
  return std::any_of(settings.begin(), settings.end(), [&](const auto& s) { return s.key == key; });
}

// A vocabulary that only the tokenizer knows is the same for all arms.
std::vector<ParameterSpec> specs_of(GptConfig model) {
  if (model.vocab_size == 0) model.vocab_size = 1;
  model.resolve();
  return parameter_specs(model);
}

bool same_parameters(const GptConfig& a, const GptConfig& b) {
  const auto x = specs_of(a), y = specs_of(b);
  return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                    [](const ParameterSpec& p, const ParameterSpec& q) { return p.name == q.name && p.shape == q.shape; });
}

}  // namespace

void check_seed_keys(const Sweep& sweep, ConfigPlace seed_keys) {
  const auto fail = [&](const std::string& message) {
    fail_config(place_text(sweep.file, seed_keys) + ":", message, "e.g. seed_keys = [\"train.seed\", \"data.zipf.seed\"]");
  };
  if (sweep.seed_keys.empty()) fail("seed_keys is empty: the runs of all seeds would be one and the same");
  for (const std::string& key : sweep.seed_keys)
    if (key.substr(key.rfind('.') + 1) != "seed")
      fail(fmt::format("seed_keys must name fields that are seeds, got \"{}\": its value would be a run's seed", key));
}

void check_settings_for_all(const Sweep& sweep, const std::vector<SweepAxis>& shared) {
  for (const SweepSetting& s : sweep.settings) {
    const std::string at = place_text(sweep.file, s.place) + ":";
    if (has(sweep.seed_keys, s.key)) fail_config(at, fmt::format("[set] has {}, which gets each run's own value of seeds", s.key));
    if (sets(shared, s.key)) fail_config(at, fmt::format("[set] has {}, which is also in [grid]", s.key));
  }
}

void check_overrides(const Sweep& sweep) {
  for (const SweepSetting& s : sweep.settings) {
    if (s.place.line != 0) continue;
    const std::string at = fmt::format("--set {}={}:", s.key, s.value);
    if (s.key == "name")
      fail_config(at, "each run is named by its arm and seed", "name the sweep in its file, or the directory with --out");
    if (has(sweep.seed_keys, s.key)) fail_config(at, "each run gets its own value of seeds", "change seeds in the sweep's file");
    for (const SweepArm& arm : sweep.arms)
      if (sets(arm.settings, s.key) || sets(arm.axes, s.key))
        fail_config(at, fmt::format("--set is for all runs, but arm \"{}\" has {} of its own", arm.name, s.key),
                    "change it in the sweep's file");
  }
}

namespace {

// Those of the first list that all lists have, by the key of the setting.
std::vector<IdleSetting> common_to(const std::vector<std::vector<IdleSetting>>& lists) {
  std::vector<IdleSetting> common = lists[0];
  for (const std::vector<IdleSetting>& list : lists)
    std::erase_if(common, [&](const IdleSetting& s) {
      return std::none_of(list.begin(), list.end(), [&](const IdleSetting& other) { return other.keys[0] == s.keys[0]; });
    });
  return common;
}

[[noreturn]] void fail_idle(const Sweep& sweep, ConfigPlace place, const std::string& who, const IdleSetting& idle) {
  fail_config(place_text(sweep.file, place) + ":", who + idle.what, idle.hint);
}

void check_arm(const Sweep& sweep, const SweepArm& arm, const std::vector<IdleSetting>& idle) {
  for (const IdleSetting& problem : idle)
    for (const SweepSetting& s : arm.settings)
      if (s.key == problem.keys[0]) fail_idle(sweep, s.place, fmt::format("arm \"{}\": ", arm.name), problem);
}

// A value of an axis may be idle at some points, where another axis makes it so, but it must act at one of its points.
void check_axis(const Sweep& sweep, const SweepArm& arm, size_t axis, const std::vector<std::vector<IdleSetting>>& idle) {
  const std::string& key = arm.axes[axis].key;
  for (size_t value = 0; value < arm.axes[axis].values.size(); ++value) {
    std::vector<std::vector<IdleSetting>> of_value;
    std::string label;
    for (size_t p = 0; p < arm.points.size(); ++p) {
      if (arm.points[p].at[axis] != value) continue;
      if (of_value.empty()) label = arm.points[p].label;
      of_value.push_back(idle[p]);
    }
    for (const IdleSetting& problem : common_to(of_value))
      if (problem.keys[0] == key)
        fail_idle(sweep, arm.axes[axis].place, fmt::format("arm \"{}\" ({}): ", arm.name, label), problem);
  }
}

}  // namespace

void check_no_idle_settings(const Sweep& sweep, const IdleOfRuns& idle) {
  std::vector<std::vector<IdleSetting>> of_arms;
  for (size_t a = 0; a < idle.size(); ++a) {
    const SweepArm& arm = sweep.arms[a];
    for (size_t axis = 0; axis < arm.axes.size(); ++axis) check_axis(sweep, arm, axis, idle[a]);
    of_arms.push_back(common_to(idle[a]));
    check_arm(sweep, arm, of_arms.back());
  }
  std::vector<IdleSetting> of_all = common_to(of_arms);
  std::erase_if(of_all, [](const IdleSetting& s) { return !s.refused; });  // the base may have them
  if (of_all.empty()) return;
  for (const SweepSetting& s : sweep.settings)
    if (s.key == of_all[0].keys[0] && s.place.line != 0) fail_idle(sweep, s.place, "", of_all[0]);
  fail_config(sweep.base + ":", of_all[0].what, of_all[0].hint);
}

std::string config_text(const Config& config) {
  const auto trains = [](const std::string& key) {
    return key != "name" && key != "train.threads" && key != "train.log_every" && !key.starts_with("checkpoint.");
  };
  std::string text;
  for (const ConfigField& field : config_fields(config))
    if (trains(field.key)) text += field.key + "=" + field.value + "\n";
  return text;
}

namespace {

using PointOfText = std::map<std::string, size_t>;

[[noreturn]] void fail_twice(const Sweep& sweep, ConfigPlace place, const SweepArm& arm, const SweepPoint& point,
                             const SweepArm& before, const SweepPoint& its) {
  fail_config(place_text(sweep.file, place) + ":",
              fmt::format("arm \"{}\" ({}) is arm \"{}\" ({}) over again: their configs have the same values", arm.name,
                          point.label, before.name, its.label),
              "take one of them out; for the noise of the baseline against itself, give aa_seeds");
}

std::set<std::string> axis_keys(const SweepArm& arm) {
  std::set<std::string> keys;
  for (const SweepAxis& axis : arm.axes) keys.insert(axis.key);
  return keys;
}

PointOfText check_points(const Sweep& sweep, const SweepArm& arm, const std::vector<std::string>& texts) {
  PointOfText points;
  for (size_t p = 0; p < texts.size(); ++p) {
    const auto [before, is_new] = points.emplace(texts[p], p);
    if (!is_new) fail_twice(sweep, arm.axes[0].place, arm, arm.points[p], arm, arm.points[before->second]);
  }
  return points;
}

void check_arms_differ(const Sweep& sweep, const SweepArm& arm, const std::vector<std::string>& texts, const SweepArm& before,
                       const PointOfText& its) {
  std::vector<size_t> common;
  for (size_t p = 0; p < texts.size(); ++p)
    if (its.contains(texts[p])) common.push_back(p);
  const bool all = common.size() == texts.size() && common.size() == its.size();
  if (common.empty() || (!all && axis_keys(arm) != axis_keys(before))) return;
  fail_twice(sweep, arm.place, arm, arm.points[common[0]], before, before.points[its.at(texts[common[0]])]);
}

}  // namespace

void check_no_run_twice(const Sweep& sweep, const TextOfRuns& texts) {
  std::vector<PointOfText> arms;
  for (size_t a = 0; a < texts.size(); ++a) {
    arms.push_back(check_points(sweep, sweep.arms[a], texts[a]));
    for (size_t b = 0; b < a; ++b) check_arms_differ(sweep, sweep.arms[a], texts[a], sweep.arms[b], arms[b]);
  }
}

void check_no_batch_left_out(const Sweep& sweep, const Config& config, const SweepArm& arm) {
  const auto leaves_out = [](const std::string& action) { return action == "skip" || action == "rewind"; };
  const TrainConfig& train = config.train;
  const bool spike = train.spike.window > 0 && leaves_out(train.spike.action);
  if (!spike && !leaves_out(train.on_nonfinite)) return;
  fail_config(
      place_text(sweep.file, arm.place) + ":",
      fmt::format("the runs of arm \"{}\" have {} = \"{}\": one that leaves a batch out trains on other data than the run of "
                  "its seed that it is compared with",
                  arm.name, spike ? "train.spike.action" : "train.on_nonfinite", spike ? train.spike.action : train.on_nonfinite),
      "use \"stop\": a run whose loss is not finite is a result");
}

void check_pair(const Sweep& sweep, const Config& first, const Config& other, const SweepArm& arm, const SweepPoint& point) {
  const char* differs = !same_parameters(first.model, other.model)           ? "a model of other parameters"
                        : first.train.steps != other.train.steps             ? "another train.steps"
                        : first.train.grad_accum != other.train.grad_accum   ? "another train.grad_accum"
                        : first.train.eval_tokens != other.train.eval_tokens ? "another train.eval_tokens"
                                                                             : nullptr;
  if (differs == nullptr) return;
  const SweepArm& from = sweep.arms[0];
  fail_config(
      place_text(sweep.file, arm.place) + ":",
      fmt::format("arm \"{}\" ({}) has {} than arm \"{}\" ({}): runs of one seed are compared in pairs, from the same initial "
                  "weights and on the same data",
                  arm.name, point.label, differs, from.name, from.points[0].label),
      "leave the model's shape, the batch and the steps to the base config and [set]");
}

}  // namespace rowan
