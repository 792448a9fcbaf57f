// What [optim] and [[optim.group]] say about parameters that the model does not have, or whose gradients are not what a rule needs.
#include <fmt/format.h>

#include <algorithm>

#include "optim/groups.h"
#include "optim/row_optimizer.h"
#include "train/config_fields.h"
#include "train/config_validate.h"

namespace rowan {
namespace {

// Parameters of the whole run, before a head is untied and after; one whose gradients change their kind then is there twice.
std::vector<ParameterSpec> all_specs(const Config& config) {
  std::vector<ParameterSpec> specs = specs_at(config, 0);
  if (untied_by(config, 0) || !untied_by(config, config.train.untie_at)) return specs;
  for (ParameterSpec& later : specs_at(config, config.train.untie_at)) {
    const auto same = [&](const ParameterSpec& s) { return s.name == later.name && s.kind == later.kind; };
    if (std::none_of(specs.begin(), specs.end(), same)) specs.push_back(std::move(later));
  }
  return specs;
}

// Why a rule on whole matrices can't take a parameter; "" when it can.
std::string why_no_matrix(const ParameterSpec& spec) {
  if (spec.name.starts_with("embed.")) return "an embedding table";
  if (spec.name.starts_with("head.")) return "the head";
  if (spec.shape.rank() != 2) return "a vector";
  return spec.kind == GradKind::kRowSparse ? "row-sparse" : "";
}

bool is_cowclip(const OptimGroupConfig& g) {
  const auto* rule = dynamic_cast<const RowOptimizer*>(g.optimizer.get());
  return rule != nullptr && rule->axes().clip == "cowclip";
}

constexpr const char* kTables =
    "tables that are looked up have such rows: embed.tokens.weight unless tied, embed.positions.weight, and head.weight with "
    "train.loss = \"sampled\"";

// What a parameter needs to be that most are not. Checked for the parameters that a group with such a rule takes.
void check_parameter(const Config& config, const OptimGroupConfig& group, const std::string& path, const ParameterSpec& spec) {
  const std::vector<std::string> keys = {path + ".rule", path + ".params"};
  const std::string why = group.optimizer->whole_matrix() ? why_no_matrix(spec) : "";
  if (!why.empty())
    fail_keys(
        config, keys,
        fmt::format("{}.rule = \"{}\" is for the matrices of blocks, whose update it makes orthogonal as a whole, but {} is {}",
                    path, group.rule, spec.name, why),
        fmt::format("write [[optim.group]] params = \"blocks.*.attn.*.weight\" rule = \"{0}\", the same for "
                    "\"blocks.*.mlp.*.weight\", and another rule, such as adamw, in [optim] for the rest",
                    group.rule));
  if (spec.kind == GradKind::kRowSparse) return;
  if (group.optimizer->sparse_only())
    fail_keys(config, keys,
              fmt::format("{}.rule = \"{}\" updates only rows that a batch touched, but {} is dense: every step gives all of it a "
                          "gradient",
                          path, group.rule, spec.name),
              fmt::format("give it to tables alone, in [[optim.group]] with params = \"embed.*\"; {}", kTables));
  if (is_cowclip(group))
    fail_keys(config, {path + ".clip", path + ".params"},
              fmt::format("{}.clip = \"cowclip\" needs to know how often a batch read each row, but {} is dense: every step gives "
                          "all of it a gradient",
                          path, spec.name),
              spec.name == "embed.tokens.weight"
                  ? "use clip = \"row_norm\", or set model.tied = false: the table then is dense no more"
                  : fmt::format("use clip = \"row_norm\" or a [[optim.group]] for tables alone; {}", kTables));
}

// Thousands of groups for thousands of layers would take seconds; the optimizers of a run, which say the same, see to those.
constexpr size_t kMostPairs = 4'000'000;

bool is_particular(const OptimGroupConfig& g) {
  return g.optimizer && (g.optimizer->whole_matrix() || g.optimizer->sparse_only() || is_cowclip(g));
}

// Of a glob that takes no parameter: most often one that another setting takes away.
std::string hint_for(const Config& config, const std::vector<std::string>& names, const std::string& glob,
                     const std::string& otherwise) {
  if (std::any_of(names.begin(), names.end(), [&](const std::string& name) { return glob_matches(glob, name); })) return otherwise;
  if (config.model.tied && glob_matches(glob, "head.weight"))
    return "the head is tied to embed.tokens.weight: set model.tied = false, train.untie_at or train.tied_two_source = true";
  if (config.model.positions != "learned" && glob_matches(glob, "embed.positions.weight"))
    return "only model.positions = \"learned\" has a table";
  return otherwise;
}

}  // namespace

std::vector<ParameterSpec> specs_at(const Config& config, int64_t step) {
  GptConfig model = model_at(config, step);
  model.vocab_size = std::max<int64_t>(1, model.vocab_size);
  model.resolve();
  return parameter_specs(model, head_grads_at(config, step));
}

void check_rules(const Config& config) {
  if (!is_particular(config.optim) && std::none_of(config.groups.begin(), config.groups.end(), is_particular)) return;
  const std::vector<ParameterSpec> specs = all_specs(config);
  if (config.groups.size() * specs.size() > kMostPairs) return;
  for (const ParameterSpec& spec : specs) {
    const auto [group, path] = group_of(config, spec.name);
    if (is_particular(*group)) check_parameter(config, *group, path, spec);
  }
}

void check_no_empty_group(const Config& config) {
  if (config.groups.empty()) return;
  std::vector<std::string> names, globs;
  for (const ParameterSpec& spec : all_specs(config)) names.push_back(spec.name);
  for (const OptimGroupConfig& g : config.groups) globs.push_back(g.params);
  if (globs.size() * names.size() > kMostPairs) return;
  const auto unused = find_unused_group(globs, names, assign_groups(globs, names));
  if (!unused) return;
  const std::string key = fmt::format("optim.group.{}.params", unused->group);
  const std::string& glob = globs[unused->group];
  fail_keys(config, {key}, fmt::format("{} = {} {}", key, toml_text(glob), unused->what),
            hint_for(config, names, glob, unused->hint));
}

}  // namespace rowan
