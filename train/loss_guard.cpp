#include "train/loss_guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "train/counters.h"

namespace rowan {

std::string LossGuard::judge(double loss) const {
  if (window_ == 0 || static_cast<int64_t>(losses_.size()) < window_) return "";
  const auto n = static_cast<double>(losses_.size());
  double mean = 0, squares = 0;
  for (double x : losses_) mean += x / n;
  for (double x : losses_) squares += (x - mean) * (x - mean) / n;
  const double deviation = std::max(std::sqrt(squares), 1e-3 * std::abs(mean));
  if (!(loss > mean + z_ * deviation)) return "";
  return fmt::format("the loss {:.4f} is a spike, {:.1f} standard deviations above the mean {:.4f} of the last {} steps", loss,
                     (loss - mean) / deviation, mean, losses_.size());
}

void LossGuard::accept(double loss) {
  counts_.skips = 0;
  if (window_ == 0) return;
  losses_.push_back(loss);
  if (static_cast<int64_t>(losses_.size()) > window_) losses_.erase(losses_.begin());
}

bool LossGuard::count_rewind(int64_t failed_step) {
  if (failed_step > counts_.failed_step) counts_.rewinds = 0;
  counts_.failed_step = std::max(counts_.failed_step, failed_step);
  return ++counts_.rewinds <= kMostRewinds;
}

void LossGuard::reset() {
  losses_.clear();
  counts_ = {};
}

void LossGuard::visit_state(StateVisitor& v) {
  v("losses", losses_);
  v("skips", counts_.skips);
  v("rewinds", counts_.rewinds);
  v("failed_step", counts_.failed_step);
  if (!v.loading()) return;
  for (const int64_t count : {counts_.skips, counts_.rewinds, counts_.failed_step})
    if (count < 0 || count > kLargestCount) fail_data("[resume] /train/guard has a count of ", count);
  // A resume may ask for another window: the newest losses serve, and a longer window fills up first.
  if (static_cast<int64_t>(losses_.size()) > window_) losses_.erase(losses_.begin(), losses_.end() - window_);
}

}  // namespace rowan
