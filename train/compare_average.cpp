#include "train/compare_average.h"

namespace rowan {
namespace {

// Sums of means, each times what it is a mean over; divide() makes means of them again.
template <class Bucket>
void add(std::map<int, Bucket>& sums, const std::map<int, Bucket>& buckets) {
  for (const auto& [number, bucket] : buckets) {
    Bucket& to = sums[number];
    Bucket::visit(bucket, [&](int64_t count, const auto&... means) {
      Bucket::visit(to, [&](int64_t& total, auto&... of_means) {
        total += count;
        ((of_means += static_cast<double>(count) * means), ...);
      });
    });
  }
}

template <class Bucket>
void divide(std::map<int, Bucket>& sums) {
  for (auto& [number, sum] : sums)
    Bucket::visit(sum, [](int64_t count, auto&... of_means) { ((of_means /= static_cast<double>(count)), ...); });
}

}  // namespace

AverageRun average(const std::vector<RunResult>& runs) {
  AverageRun mean;
  std::map<int64_t, std::pair<size_t, double>> curve;
  const double share = 1.0 / static_cast<double>(runs.size());
  for (const RunResult& run : runs) {
    mean.loss += share * run.validation.loss;
    mean.divergence += share * run.validation.divergence;
    mean.lowest_loss = run.validation.lowest_loss;
    mean.truth_known = run.validation.truth_known;
    mean.state_bytes_per_row += share * run.state_bytes_per_row;
    mean.bytes_per_step += share * run.bytes_per_step;
    mean.touched_rows += share * run.touched_rows;
    mean.step_ms += share * run.step_ms;
    mean.update_ms += share * run.update_ms;
    add(mean.by_input, run.validation.by_input);
    add(mean.by_target, run.validation.by_target);
    add(mean.rows, run.rows);
    add(mean.touches, run.touches);
    for (const CurvePoint& p : run.curve) {
      ++curve[p.step].first;
      curve[p.step].second += share * p.loss;
    }
  }
  divide(mean.by_input);
  divide(mean.by_target);
  divide(mean.rows);
  divide(mean.touches);
  for (const auto& [step, sum] : curve)
    if (sum.first == runs.size()) mean.curve.push_back({step, sum.second});
  return mean;
}

}  // namespace rowan
