// What finished runs say: best points, winners, differences.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "train/compare.h"
#include "train/config_fields.h"

namespace rowan {
namespace {

constexpr uint64_t kBootstrapSeed = 1;

std::vector<double> losses_of(const std::vector<RunResult>& runs) {
  std::vector<double> losses;
  for (const RunResult& run : runs) losses.push_back(run.validation.loss);
  return losses;
}

PointSummary summarize(const Sweep& sweep, std::vector<RunResult> runs) {
  PointSummary point;
  point.runs = std::move(runs);
  point.trained = std::none_of(point.runs.begin(), point.runs.end(), [](const RunResult& run) { return run.diverged; });
  if (!point.trained) return point;
  const std::vector<double> losses = losses_of(point.runs);
  point.mean = mean_of(losses);
  point.deviation = deviation_of(losses);
  point.interval = t_interval(losses, sweep.confidence);
  return point;
}

Limits limits_of(const Config& config, const std::string& key) {
  for (const ConfigField& field : config_fields(config))
    if (field.key == key) return field.limits;
  return {};
}

// Why a point is at the edge of an arm's grid, or "". An axis of one value was not searched; one without numbers has no edge, and
// nothing lies beyond the end of what the field may be: weight_decay = 0.
std::string edge_of(const SweepArm& arm, const SweepPoint& point, const Config& config) {
  for (size_t k = 0; k < arm.axes.size(); ++k) {
    const SweepAxis& axis = arm.axes[k];
    if (axis.numbers.size() < 2) continue;
    const double at = axis.numbers[point.at[k]];
    const auto [low, high] = std::minmax_element(axis.numbers.begin(), axis.numbers.end());
    const Limits limits = limits_of(config, axis.key);
    const bool low_edge = at == *low && at != limits.low, high_edge = at == *high && at != limits.high;
    if (!low_edge && !high_edge) continue;
    return fmt::format("its best {} = {} is the {} that was tried: a better one may lie beyond", axis.key, axis.values[point.at[k]],
                       low_edge ? "lowest" : "highest");
  }
  return "";
}

ArmSummary summarize_arm(const Sweep& sweep, size_t number, std::vector<std::vector<RunResult>> results) {
  ArmSummary arm;
  arm.best = best_point(sweep, results);
  for (std::vector<RunResult>& runs : results) arm.points.push_back(summarize(sweep, std::move(runs)));
  arm.refused = arm.best ? edge_of(sweep.arms[number], sweep.arms[number].points[*arm.best],
                                   run_config(sweep, number, *arm.best, sweep.seeds[0]))
                         : "at every point of its grid a run's loss was not finite";
  return arm;
}

ArmDifference difference(const Sweep& sweep, size_t arm, const std::vector<RunResult>& runs, const std::vector<RunResult>& base) {
  ArmDifference d;
  d.arm = arm;
  for (size_t i = 0; i < runs.size(); ++i) d.by_seed.push_back(runs[i].validation.loss - base[i].validation.loss);
  d.mean = mean_of(d.by_seed);
  d.t = t_interval(d.by_seed, sweep.confidence);
  d.bootstrap = bootstrap_interval(d.by_seed, sweep.confidence, sweep.resamples, kBootstrapSeed);
  d.p = d.p_holm = t_test(d.by_seed);
  d.deviation = deviation_of(d.by_seed);
  return d;
}

// Two samples that are not paired: the order of either means nothing.
ArmDifference unpaired_difference(const Sweep& sweep, size_t arm, const std::vector<RunResult>& runs,
                                  const std::vector<RunResult>& base) {
  const std::vector<double> a = losses_of(runs), b = losses_of(base);
  ArmDifference d;
  d.arm = arm;
  d.mean = mean_of(a) - mean_of(b);
  d.t = welch_interval(a, b, sweep.confidence);
  d.bootstrap = bootstrap_interval(a, b, sweep.confidence, sweep.resamples, kBootstrapSeed);
  d.p = d.p_holm = welch_test(a, b);
  d.deviation = std::hypot(deviation_of(a), deviation_of(b));
  return d;
}

}  // namespace

std::optional<size_t> best_point(const Sweep& sweep, const std::vector<std::vector<RunResult>>& results) {
  std::optional<size_t> best;
  double lowest = 0;
  for (size_t p = 0; p < results.size(); ++p) {
    const PointSummary point = summarize(sweep, results[p]);
    if (!point.trained || (best && point.mean >= lowest)) continue;
    best = p;
    lowest = point.mean;
  }
  return best;
}

Comparison compare(const Sweep& sweep, std::vector<std::vector<std::vector<RunResult>>> results, std::vector<RunResult> aa_runs) {
  Comparison c;
  for (size_t a = 0; a < sweep.arms.size(); ++a) c.arms.push_back(summarize_arm(sweep, a, std::move(results[a])));
  c.aa_runs = std::move(aa_runs);
  const ArmSummary& baseline = c.arms[sweep.baseline_arm];
  if (!baseline.best) return c;
  const std::vector<RunResult>& base = baseline.points[*baseline.best].runs;
  std::vector<double> p_values;
  for (size_t a = 0; a < c.arms.size(); ++a) {
    if (a == sweep.baseline_arm || !c.arms[a].best) continue;
    c.differences.push_back(difference(sweep, a, c.arms[a].points[*c.arms[a].best].runs, base));
    p_values.push_back(c.differences.back().p);
  }
  const std::vector<double> adjusted = holm_adjusted(p_values);
  for (size_t i = 0; i < adjusted.size(); ++i) c.differences[i].p_holm = adjusted[i];
  const auto diverged = [](const RunResult& run) { return run.diverged; };
  if (!c.aa_runs.empty() && std::none_of(c.aa_runs.begin(), c.aa_runs.end(), diverged))
    c.aa = unpaired_difference(sweep, sweep.baseline_arm, c.aa_runs, base);
  return c;
}

}  // namespace rowan
