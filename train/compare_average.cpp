#include "train/compare_average.h"

namespace rowan {
namespace {

// Adds sums; divide() makes means of them.
void add(std::map<int, BucketLoss>& sums, const std::map<int, BucketLoss>& buckets) {
  for (const auto& [bucket, b] : buckets) {
    BucketLoss& sum = sums[bucket];
    const auto weight = static_cast<double>(b.tokens);
    sum.tokens += b.tokens;
    sum.loss += weight * b.loss;
    sum.divergence += weight * b.divergence;
  }
}

void divide(std::map<int, BucketLoss>& sums) {
  for (auto& [bucket, s] : sums) {
    s.loss /= static_cast<double>(s.tokens);
    s.divergence /= static_cast<double>(s.tokens);
  }
}

void add(std::map<int, BucketRows>& sums, const std::map<int, BucketRows>& buckets) {
  for (const auto& [bucket, b] : buckets) {
    BucketRows& sum = sums[bucket];
    const auto weight = static_cast<double>(b.rows);
    sum.rows += b.rows;
    sum.norm += weight * b.norm;
    sum.age += weight * b.age;
    sum.touch_gap += weight * b.touch_gap;
  }
}

void divide(std::map<int, BucketRows>& sums) {
  for (auto& [bucket, s] : sums) {
    const auto rows = static_cast<double>(s.rows);
    s.norm /= rows;
    s.age /= rows;
    s.touch_gap /= rows;
  }
}

void add(std::map<int, BucketTouches>& sums, const std::map<int, BucketTouches>& buckets) {
  for (const auto& [bucket, b] : buckets) {
    sums[bucket].touches += b.touches;
    sums[bucket].moved += static_cast<double>(b.touches) * b.moved;
  }
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
  for (auto& [bucket, t] : mean.touches) t.moved /= static_cast<double>(t.touches);
  for (const auto& [step, sum] : curve)
    if (sum.first == runs.size()) mean.curve.push_back({step, sum.second});
  return mean;
}

}  // namespace rowan
