#include "optim/groups.h"

#include <fnmatch.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "core/nearest.h"
#include "core/parallel.h"
#include "optim/settings.h"

namespace rowan {
namespace {

constexpr const char* kFallbackGlob = "*";

std::string pad(std::string text, size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}

std::string kinds_of(const GroupReport& g) {
  if (g.row_sparse == 0) return "dense";
  return g.dense == 0 ? "row-sparse" : join_text(g.dense, " dense, ", g.row_sparse, " row-sparse");
}

// One parallel loop over the pieces of all: a model's many small tensors don't each wait for all threads to end.
void run_together(const std::vector<std::unique_ptr<PiecewiseStep>>& steps) {
  std::vector<std::pair<const PiecewiseStep*, int64_t>> pieces;
  for (const auto& step : steps)
    for (int64_t i = 0; i < step->pieces(); ++i) pieces.emplace_back(step.get(), i);
  const auto start = std::chrono::steady_clock::now();
  parallel_pieces(std::ssize(pieces), [&](int64_t i) {
    const auto& [step, piece] = pieces[static_cast<size_t>(i)];
    step->run(piece);
  });
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  for (const auto& step : steps)
    step->finish(seconds * static_cast<double>(step->pieces()) / static_cast<double>(std::max<size_t>(1, pieces.size())));
}

}  // namespace

bool glob_matches(const std::string& glob, const std::string& name) {
  return fnmatch(glob.c_str(), name.c_str(), 0) == 0;
}

std::vector<size_t> assign_groups(const std::vector<std::string>& globs, const std::vector<std::string>& names) {
  std::vector<size_t> group_of;
  for (const std::string& name : names) {
    const auto takes = [&](const std::string& glob) { return glob_matches(glob, name); };
    group_of.push_back(static_cast<size_t>(std::find_if(globs.begin(), globs.end(), takes) - globs.begin()));
  }
  return group_of;
}

std::optional<UnusedGroup> find_unused_group(const std::vector<std::string>& globs, const std::vector<std::string>& names,
                                             const std::vector<size_t>& group_of) {
  const std::set<size_t> used(group_of.begin(), group_of.end());
  size_t g = 0;
  while (g < globs.size() && used.contains(g)) ++g;
  if (g == globs.size()) return {};
  for (size_t i = 0; i < names.size(); ++i)
    if (glob_matches(globs[g], names[i]))
      return UnusedGroup{g,
                         join_text("takes no parameter: '", names[i], "' and all else that it matches went to the earlier group '",
                                   globs[group_of[i]], "'"),
                         "put the narrower group first"};
  std::string some;
  for (size_t i = 0; i < std::min<size_t>(names.size(), 12); ++i) some += (i ? ", " : "") + names[i];
  if (names.size() > 12) some += ", ...";
  const std::string near = nearest_name(globs[g], names);
  return UnusedGroup{g, "matches no parameter; there are: " + some, near.empty() ? "" : "did you mean '" + near + "'?"};
}

OptimizerSet::OptimizerSet(std::vector<ParameterGroup> groups, std::shared_ptr<Optimizer> fallback,
                           std::vector<NamedParameter> parameters, const std::vector<std::string>& later)
    : groups_(std::move(groups)), parameters_(std::move(parameters)) {
  std::vector<std::string> globs, names;
  for (const ParameterGroup& g : groups_) globs.push_back(g.params);
  for (const NamedParameter& p : parameters_) names.push_back(p.name);
  names.insert(names.end(), later.begin(), later.end());
  group_of_ = assign_groups(globs, names);
  if (const std::optional<UnusedGroup> unused = find_unused_group(globs, names, group_of_))
    throw Error("[optim] group '" + globs[unused->group] + "' " + unused->what, ErrorKind::kUsage, unused->hint);
  group_of_.resize(parameters_.size());
  groups_.push_back({kFallbackGlob, std::move(fallback)});
  for (const ParameterGroup& g : groups_) g.optimizer->validate();
  for (size_t i = 0; i < parameters_.size(); ++i)
    groups_[group_of_[i]].optimizer->prepare(parameters_[i].name, *parameters_[i].parameter);
}

GradNorm OptimizerSet::clip_and_step(double clip_norm, StepInfo info) {
  const GradNorm norm = global_grad_norm(parameters_);
  if (!norm.finite) return norm;
  info.grad_scale *= norm.scale(clip_norm);
  step(info);
  return norm;
}

void OptimizerSet::step(const StepInfo& info) {
  std::vector<std::unique_ptr<PiecewiseStep>> steps;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    Optimizer& optimizer = *groups_[group_of_[i]].optimizer;
    const NamedParameter& p = parameters_[i];
    if (auto pieces = optimizer.step_in_pieces(p.name, *p.parameter, info)) {
      steps.push_back(std::move(pieces));
    } else {
      optimizer.step(p.name, *p.parameter, info);
    }
  }
  run_together(steps);
}

UpdateReport OptimizerSet::last_update(const std::string& parameter) const {
  return groups_[group_of_[index_of(parameter)]].optimizer->last_update(parameter);
}

void OptimizerSet::visit_state(StateVisitor& v) {
  std::vector<Optimizer*> seen;  // two groups may share one optimizer, whose state is visited once
  for (size_t g = 0; g < groups_.size(); ++g) {
    Optimizer* optimizer = groups_[g].optimizer.get();
    if (std::find(seen.begin(), seen.end(), optimizer) != seen.end()) continue;
    seen.push_back(optimizer);
    const std::string text = write_settings(settings_of(*optimizer));
    std::vector<uint8_t> bytes(text.begin(), text.end());
    v("group-" + std::to_string(g) + "/settings", bytes);
    if (v.loading()) {
      read_settings(*optimizer, std::string(bytes.begin(), bytes.end()));
      optimizer->settings_changed();
      for (size_t i = 0; i < parameters_.size(); ++i)
        if (groups_[group_of_[i]].optimizer.get() == optimizer) optimizer->prepare(parameters_[i].name, *parameters_[i].parameter);
    }
    optimizer->visit_state(v);
  }
}

std::vector<GroupReport> OptimizerSet::report() const {
  std::vector<GroupReport> reports;
  for (size_t g = 0; g < groups_.size(); ++g) {
    GroupReport r{groups_[g].params, groups_[g].optimizer->rule(), settings_line(settings_of(*groups_[g].optimizer))};
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if (group_of_[i] != g) continue;
      Parameter& p = *parameters_[i].parameter;
      ++r.tensors;
      r.elements += p.shape().size();
      r.state_bytes += groups_[g].optimizer->state_bytes(parameters_[i].name);
      ++(p.kind() == GradKind::kDense ? r.dense : r.row_sparse);
      r.parameters.push_back(parameters_[i].name);
    }
    if (r.tensors > 0) reports.push_back(std::move(r));
  }
  return reports;
}

std::string OptimizerSet::report_text() const {
  const std::vector<GroupReport> reports = report();
  size_t widest = 6;
  for (const GroupReport& r : reports) widest = std::max(widest, r.params.size());
  std::string text = pad("params", widest) + "  rule         tensors    elements  state bytes  gradient\n";
  const auto right = [](int64_t n, size_t width) {
    const std::string digits = std::to_string(n);
    return std::string(width > digits.size() ? width - digits.size() : 0, ' ') + digits;
  };
  for (const GroupReport& r : reports)
    text += pad(r.params, widest) + "  " + pad(r.rule, 11) + right(r.tensors, 9) + right(r.elements, 12) +
            right(r.state_bytes, 13) + "  " + kinds_of(r) + "\n  " + r.settings + "\n";
  return text;
}

size_t OptimizerSet::index_of(const std::string& parameter) const {
  for (size_t i = 0; i < parameters_.size(); ++i)
    if (parameters_[i].name == parameter) return i;
  fail("[optim] there is no parameter '", parameter, "'");
}

Optimizer& OptimizerSet::optimizer_of(const std::string& parameter) {
  return *groups_[group_of_[index_of(parameter)]].optimizer;
}

void OptimizerSet::catch_up(const std::string& parameter, std::span<const int32_t> ids) {
  const size_t i = index_of(parameter);
  groups_[group_of_[i]].optimizer->catch_up(parameter, *parameters_[i].parameter, ids);
}

void OptimizerSet::flush() {
  for (size_t i = 0; i < parameters_.size(); ++i)
    groups_[group_of_[i]].optimizer->flush(parameters_[i].name, *parameters_[i].parameter);
}

}  // namespace rowan
