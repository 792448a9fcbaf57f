// The results for a person to read.
#include <fmt/format.h>

#include <algorithm>

#include "train/compare.h"
#include "train/compare_average.h"

namespace rowan {
namespace {

struct BestOf {
  std::string name;
  AverageRun run;
};

size_t widest_name(const Sweep& sweep) {
  size_t widest = 8;
  for (const SweepArm& arm : sweep.arms) widest = std::max(widest, arm.name.size());
  return widest;
}

std::string response_text(const Sweep& sweep, const Comparison& c) {
  const size_t names = widest_name(sweep);
  size_t labels = 5;
  for (const SweepArm& arm : sweep.arms)
    for (const SweepPoint& p : arm.points) labels = std::max(labels, p.label.size());
  std::string text = fmt::format("Validation loss at the end, mean and deviation over {} seeds\n{:<{}}  {:<{}}  {:>9}  {:>9}\n",
                                 sweep.seeds.size(), "arm", names, "point", labels, "loss", "deviation");
  for (size_t a = 0; a < sweep.arms.size(); ++a) {
    const ArmSummary& arm = c.arms[a];
    for (size_t p = 0; p < arm.points.size(); ++p) {
      const PointSummary& point = arm.points[p];
      text += fmt::format("{:<{}}  {:<{}}  ", p == 0 ? sweep.arms[a].name : "", names, sweep.arms[a].points[p].label, labels);
      text += point.trained ? fmt::format("{:>9.4f}  {:>9.4f}", point.mean, point.deviation)
                            : fmt::format("{:>9}  {:>9}", "diverged", "");
      text += arm.best != p ? "\n" : arm.refused.empty() ? "  winner\n" : "  best, but no winner\n";
    }
    if (!arm.refused.empty()) text += fmt::format("{:<{}}  no winner: {}\n", "", names, arm.refused);
  }
  return text;
}

std::string difference_text(const Sweep& sweep, const Comparison& c, const ArmDifference& d, const std::string& name) {
  const bool settled = c.arms[d.arm].refused.empty() && c.arms[sweep.baseline_arm].refused.empty();
  return fmt::format("{:<{}}  {:>+9.4f}  [{:+.4f}, {:+.4f}]  [{:+.4f}, {:+.4f}]  {:>7.4f}{}\n", name, widest_name(sweep), d.mean,
                     d.t.low, d.t.high, d.bootstrap.low, d.bootstrap.high, d.p_holm, settled ? "" : "  not between winners");
}

std::string differences_text(const Sweep& sweep, const Comparison& c) {
  if (c.differences.empty() && !c.aa) return "";
  std::string text = fmt::format(
      "\nDifference from {} at each arm's best point, paired by seed; below 0 is better\n"
      "{:<{}}  {:>9}  {:.0f} % by t, by bootstrap, p (t, Holm)\n",
      sweep.baseline, "arm", widest_name(sweep), "mean", 100 * sweep.confidence);
  for (const ArmDifference& d : c.differences) text += difference_text(sweep, c, d, sweep.arms[d.arm].name);
  if (c.aa)
    text += difference_text(sweep, c, *c.aa, "A/A") +
            fmt::format("A/A: {} again under other seeds, not paired; single differences deviate by {:.4f}\n", sweep.baseline,
                        c.aa->deviation);
  return text;
}

std::string costs_text(const std::vector<BestOf>& best, size_t names) {
  std::string text = fmt::format("\nToken table at the best point\n{:<{}}  {:>12}  {:>12}  {:>12}  {:>10}  {:>9}\n", "arm", names,
                                 "state B/row", "touched rows", "KB/step", "update ms", "step ms");
  for (const BestOf& b : best)
    text += fmt::format("{:<{}}  {:>12.1f}  {:>12.1f}  {:>12.1f}  {:>10.3f}  {:>9.2f}\n", b.name, names, b.run.state_bytes_per_row,
                        b.run.touched_rows, b.run.bytes_per_step / 1000, b.run.update_ms, b.run.step_ms);
  return text;
}

// One line a bucket, one column an arm.
template <class Buckets, class Value>
std::string bucket_table(const std::string& title, const std::vector<BestOf>& best, const Buckets& buckets, const Value& value) {
  std::map<int, int64_t> all;
  for (const BestOf& b : best)
    for (const auto& [bucket, entry] : buckets(b.run)) all.emplace(bucket, 0);
  std::string text = fmt::format("\n{}\n{:<16}", title, "times seen");
  for (const BestOf& b : best) text += fmt::format("  {:>{}}", b.name, std::max<size_t>(9, b.name.size()));
  text += "\n";
  for (const auto& [bucket, unused] : all) {
    text += fmt::format("{:<16}", bucket_text(bucket));
    for (const BestOf& b : best) {
      const auto& own = buckets(b.run);
      const auto found = own.find(bucket);
      text += fmt::format("  {:>{}}", found == own.end() ? "-" : value(found->second), std::max<size_t>(9, b.name.size()));
    }
    text += "\n";
  }
  return text;
}

std::string frequency_text(const std::vector<BestOf>& best) {
  const auto loss = [](const BucketLoss& b) { return fmt::format("{:.4f}", b.loss); };
  const auto input = [](const AverageRun& r) -> const auto& {
    return r.by_input;
  };
  std::string text = bucket_table("Loss by how often training read the input token", best, input, loss);
  text += bucket_table(
      "Loss by how often training had the target token", best, [](const AverageRun& r) -> const auto& { return r.by_target; },
      loss);
  if (best[0].run.truth_known)
    text += bucket_table("Divergence from the known answers, by how often training read the input token", best, input,
                         [](const BucketLoss& b) { return fmt::format("{:.5f}", b.divergence); });
  const auto rows = [](const AverageRun& r) -> const auto& {
    return r.rows;
  };
  text += bucket_table(
      "|dw| / lr a touch", best, [](const AverageRun& r) -> const auto& { return r.touches; },
      [](const BucketTouches& t) { return fmt::format("{:.4g}", t.moved); });
  text += bucket_table("|w| at the end", best, rows, [](const BucketRows& r) { return fmt::format("{:.4f}", r.norm); });
  text += bucket_table("Steps since the last touch at the end", best, rows,
                       [](const BucketRows& r) { return fmt::format("{:.1f}", r.age); });
  return text;
}

std::string curves_text(const std::vector<BestOf>& best) {
  std::string text = "\nLoss by steps (and seconds of training) at the best point\n";
  constexpr size_t kMost = 6;  // of a long curve: results.json has all
  for (const BestOf& b : best) {
    const std::vector<CurvePoint>& curve = b.run.curve;
    text += b.name + ":";
    const size_t shown = std::min(kMost, curve.size());
    for (size_t i = 0; i < shown; ++i) {
      const CurvePoint& p = curve[shown == 1 ? 0 : i * (curve.size() - 1) / (shown - 1)];
      text += fmt::format("  {} ({:.1f} s) {:.4f}", p.step, static_cast<double>(p.step) * b.run.step_ms / 1000, p.loss);
    }
    text += "\n";
  }
  return text;
}

}  // namespace

std::string results_table(const Sweep& sweep, const Comparison& c) {
  std::vector<BestOf> best;
  for (size_t a = 0; a < sweep.arms.size(); ++a)
    if (c.arms[a].best) best.push_back({sweep.arms[a].name, average(c.arms[a].points[*c.arms[a].best].runs)});
  std::string text = response_text(sweep, c) + differences_text(sweep, c);
  if (best.empty()) return text;
  if (best[0].run.truth_known) text += fmt::format("\nThe lowest loss there is: {:.4f}\n", best[0].run.lowest_loss);
  return text + costs_text(best, widest_name(sweep)) + curves_text(best) + frequency_text(best);
}

}  // namespace rowan
