// Settings that change nothing: who writes one believes that it does something, and a comparison of two of them compares a run with
// itself.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "layers/parameter_specs.h"
#include "optim/row_optimizer.h"
#include "optim/settings.h"
#include "train/config.h"
#include "train/config_fields.h"
#include "train/config_validate.h"

namespace rowan {
namespace {

// A rule's field that acts only with some values of another field of the same rule.
struct Dependent {
  const char* field;
  const char* other;
  std::vector<const char*> idle_with;  // values of `other`
  const char* hint;
};

const std::vector<Dependent>& dependents() {
  static const std::vector<Dependent> all = {
      {"clip_bound", "clip", {"none"}, "set clip to what the bound is for: \"value\", \"row_norm\" or \"cowclip\""},
      {"clip_floor", "clip", {"none", "value", "row_norm"}, "it is for clip = \"cowclip\""},
      {"decay", "weight_decay", {"0"}, "set weight_decay"},
      {"decay_vectors", "weight_decay", {"0"}, "set weight_decay"},
      {"dampening", "momentum", {"0"}, "set momentum"},
      {"sweep_above", "untouched", {"dense", "frozen"}, "it is for untouched = \"exact\""},
      {"sweep_above", "catch_up", {"closed"}, "it is for catch_up = \"replay\""},
  };
  return all;
}

using Values = std::map<std::string, std::string>;

// One of [optim] and [[optim.group]].
struct Group {
  std::string path, rule;
  Values values, defaults;
  bool counts = false;    // what the rule does depends on how many updates there were before
  bool has_rows = false;  // takes a parameter with row-sparse gradients, at some step of the run

  bool is_set(const std::string& field) const {
    const auto value = values.find(field), standard = defaults.find(field);
    return value != values.end() && standard != defaults.end() && value->second != standard->second;
  }
};

Values values_of(Optimizer& optimizer) {
  const Settings settings = settings_of(optimizer);
  return {settings.begin(), settings.end()};
}

// Paths of the groups that take a row-sparse parameter, before or after a head is untied.
std::set<std::string> groups_with_rows(const Config& config) {
  std::set<std::string> paths;
  const int64_t last = std::max<int64_t>(0, config.train.steps - 1);  // an untying after it makes rows that no step updates
  for (const int64_t step : {int64_t{0}, std::min(config.train.untie_at, last)})
    for (const ParameterSpec& spec : specs_at(config, step))
      if (spec.kind == GradKind::kRowSparse) paths.insert(group_of(config, spec.name).second);
  return paths;
}

bool counts_updates(const Optimizer& optimizer) {
  const auto* const rule = dynamic_cast<const RowOptimizer*>(&optimizer);
  if (rule == nullptr) return false;
  StepScalars first{.step = 1, .lr = 1}, later{.step = 1000, .lr = 1};
  rule->fill_scalars(first);
  rule->fill_scalars(later);
  return first.c != later.c;
}

std::vector<Group> groups_of(const Config& config) {
  const std::set<std::string> with_rows = groups_with_rows(config);
  std::vector<Group> groups;
  const auto add = [&](const OptimGroupConfig& g, const std::string& path) {
    if (!g.optimizer) return;
    groups.push_back({path, g.rule, values_of(*g.optimizer), values_of(*make_optimizer(g.rule)), counts_updates(*g.optimizer),
                      with_rows.contains(path)});
  };
  add(config.optim, "optim");
  for (size_t i = 0; i < config.groups.size(); ++i) add(config.groups[i], fmt::format("optim.group.{}", i));
  return groups;
}

bool is_zero(const std::string& value) {  // -0.0 as well
  return value.find('0') != std::string::npos && value.find_first_not_of("-.0") == std::string::npos;
}

// A text as it stands in a config.
std::string shown(const std::string& value) {
  const bool number = !value.empty() && value.find_first_not_of("0123456789.e+-") == std::string::npos;
  return number || value == "true" || value == "false" ? value : toml_text(value);
}

class IdleFinder {
 public:
  explicit IdleFinder(const Config& config) : config_(config), groups_(groups_of(config)) {}

  std::vector<IdleSetting> find() {
    find_tied_rows();
    find_two_source_decay();
    find_sampled();
    find_untie();
    for (const Group& g : groups_) {
      for (const Dependent& d : dependents()) find_dependent(g, d);
      for (const char* field : {"untouched", "duplicates", "counter", "catch_up", "sweep_above"}) find_rows(g, field);
      find_counter(g);
    }
    return std::move(found_);
  }

 private:
  // Groups without a rule of their own have [optim]'s values: one that acts anywhere is not in vain. `what` names what is asked;
  // there may be thousands of groups, which mostly ask the same.
  template <class Acts>
  bool acts_somewhere(const Group& g, const std::string& field, const std::string& what, const Acts& acts) {
    const auto [known, is_new] = acts_.emplace(std::array{g.rule, field, g.values.at(field), what}, false);
    if (is_new)
      known->second = std::any_of(groups_.begin(), groups_.end(), [&](const Group& other) {
        return other.rule == g.rule && other.values.at(field) == g.values.at(field) && acts(other);
      });
    return known->second;
  }
  void report(IdleSetting idle) {
    if (reported_.insert(idle.keys[0]).second) found_.push_back(std::move(idle));
  }

  // A table that is tied from the first step to the last has one gradient, with something in every row.
  void find_tied_rows() {
    if (!config_.model.tied || config_.train.tied_two_source || config_.train.untie_at > 0) return;
    const std::string path = group_of(config_, "embed.tokens.weight").second;
    const auto g = std::find_if(groups_.begin(), groups_.end(), [&](const Group& group) { return group.path == path; });
    if (g == groups_.end() || !g->values.contains("untouched")) return;
    const bool untouched = g->values.at("untouched") != "dense";
    if (!untouched && g->values.at("duplicates") == "sum") return;
    const std::string field = untouched ? "untouched" : "duplicates";
    const std::string& value = g->values.at(field);
    const bool preset = !g->is_set(field);
    const std::string what = fmt::format(
        "{}.{} = {}{} is about {}, but model.tied = true makes embed.tokens.weight the LM head as well, and softmax gives every "
        "row "
        "a gradient in every step",
        path, field, shown(value), preset ? fmt::format(", of rule {},", shown(g->rule)) : "",
        untouched ? "rows that a batch did not read" : "the gradients of single lookups");
    const std::string two_source =
        value == "exact" ? "" : ", or train.tied_two_source = true to update it from the lookup's gradient apart";
    report({{path + (preset ? ".rule" : "." + field), "model.tied"},
            what,
            fmt::format(
                "set model.tied = false or train.untie_at{}; for a table that stays tied use {}{}", two_source,
                preset      ? "another rule, such as adamw"
                : untouched ? "untouched = \"dense\""
                            : "duplicates = \"sum\"",
                g->has_rows ? "; position rows can have it in a group of their own, params = \"embed.positions.weight\"" : "")});
  }

  // The table's weight decay is then applied with the softmax's gradient, once: by head.weight's group.
  void find_two_source_decay() {
    if (!config_.train.tied_two_source || config_.train.untie_at > 0) return;
    const std::string path = group_of(config_, "embed.tokens.weight").second, head = group_of(config_, "head.weight").second;
    for (const ParameterSpec& spec : specs_at(config_, 0))
      if (spec.name != "embed.tokens.weight" && group_of(config_, spec.name).second == path) return;
    const auto g = std::find_if(groups_.begin(), groups_.end(), [&](const Group& group) { return group.path == path; });
    if (path == head || g == groups_.end()) return;
    for (const char* field : {"weight_decay", "decay"}) {
      if (!g->is_set(field) || acts_somewhere(*g, field, "one source", [&](const Group& other) { return other.path != path; }))
        continue;
      report({{path + "." + field, "train.tied_two_source"},
              fmt::format("{}.{} = {} is never used: with train.tied_two_source the table's weight decay is that of head.weight, "
                          "in {}",
                          path, field, shown(g->values.at(field)), head),
              "set it there"});
    }
  }

  void find_sampled() {
    if (config_.train.loss == "sampled") return;
    Config copy = config_, standard;
    const auto fields_of = [](Config& config) {
      return section_fields({"train.sampled", "", [&](FieldVisitor& v) { config.train.sampled.visit(v); }});
    };
    const std::vector<ConfigField> fields = fields_of(copy), defaults = fields_of(standard);
    for (size_t i = 0; i < fields.size(); ++i) {
      if (fields[i].value == defaults[i].value) continue;
      found_.push_back(
          {{fields[i].key, "train.loss"},
           fmt::format("{} = {} is never used: train.loss = {}", fields[i].key, fields[i].value, shown(config_.train.loss)),
           "set train.loss = \"sampled\""});
    }
  }

  void find_untie() {
    const TrainConfig& t = config_.train;
    if (t.untie_at <= t.steps) return;
    report({{"train.untie_at", "train.steps"},
            fmt::format("train.untie_at = {} is after the last step, train.steps = {}: the head would never be untied", t.untie_at,
                        t.steps),
            "set train.untie_at to at most train.steps, or leave it out"});
  }

  void find_dependent(const Group& g, const Dependent& d) {
    const auto acts = [&](const Group& group) {
      const auto other = group.values.find(d.other);
      const auto is = [&](const std::string& value) { return other->second == value || (value == "0" && is_zero(other->second)); };
      return other == group.values.end() || std::none_of(d.idle_with.begin(), d.idle_with.end(), is);
    };
    const std::string key = g.path + "." + d.field;
    if (!g.is_set(d.field) || g.values.at(d.field) == "none") return;
    if (acts_somewhere(g, d.field, d.other, acts)) return;
    report({{key, g.path + "." + d.other},
            fmt::format("{} = {} is never used: {}.{} = {}", key, shown(g.values.at(d.field)), g.path, d.other,
                        shown(g.values.at(d.other))),
            d.hint});
  }

  void find_rows(const Group& g, const std::string& field) {
    const std::string key = g.path + "." + field;
    if (!g.is_set(field) || g.values.at(field) == "dense" || g.values.at(field) == "sum" || g.values.at(field) == "global") return;
    if (acts_somewhere(g, field, "rows", [](const Group& group) { return group.has_rows; })) return;
    report({{key, g.path + ".params"},
            fmt::format("{} = {} is never used: no parameter that {} takes is updated by rows", key, shown(g.values.at(field)),
                        g.path),
            "tables that are looked up are: embed.tokens.weight unless tied, embed.positions.weight, and head.weight with "
            "train.loss = \"sampled\""});
  }

  void find_counter(const Group& g) {
    if (g.counts || !g.is_set("counter") || g.values.at("counter") != "row") return;
    const std::string key = g.path + ".counter";
    report({{key, g.path + ".rule"},
            fmt::format("{} = \"row\" is never used: nothing in {}.rule = {} depends on how many updates a row had", key, g.path,
                        shown(g.rule)),
            "leave counter out, or take a rule with bias corrections, such as adam"});
  }

  const Config& config_;
  std::vector<Group> groups_;
  std::map<std::array<std::string, 4>, bool> acts_;
  std::vector<IdleSetting> found_;
  std::set<std::string> reported_;
};

}  // namespace

std::vector<IdleSetting> idle_settings(const Config& config) {
  std::vector<IdleSetting> idle = IdleFinder(config).find();
  for (IdleSetting& field : idle_fields(config)) idle.push_back(std::move(field));
  return idle;
}

void check_no_idle_settings(const Config& config) {
  check_no_empty_group(config);
  for (const IdleSetting& idle : idle_settings(config))
    if (idle.refused) fail_keys(config, idle.keys, idle.what, idle.hint);
}

}  // namespace rowan
