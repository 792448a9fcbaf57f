#include "optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.h"

namespace rowan {
namespace {

// Share of the way from `begin` to `end`, 0 to 1. An empty way has been gone.
double progress(int64_t step, int64_t begin, int64_t end) {
  if (step >= end) return 1;
  return step <= begin ? 0 : static_cast<double>(step - begin) / static_cast<double>(end - begin);
}

}  // namespace

double Schedule::factor(int64_t step, int64_t total_steps) const {
  ROWAN_CHECK(step >= 1, "[schedule] step is ", step, "; steps count from 1");
  if (step <= warmup) return static_cast<double>(step) / static_cast<double>(warmup);
  if (kind == "constant") return 1;
  if (kind == "wsd") {
    const int64_t length = decay_steps > 0 ? decay_steps : std::max<int64_t>(1, total_steps / 10);
    return min_ratio + (1 - min_ratio) * (1 - progress(step, std::max(warmup, total_steps - length), total_steps));
  }
  const double p = progress(step, warmup, decay_steps > 0 ? decay_steps : total_steps);
  if (kind == "linear") return min_ratio + (1 - min_ratio) * (1 - p);
  ROWAN_CHECK(kind == "cosine", "[schedule] there is no kind '", kind, "'; known: cosine, linear, constant, wsd");
  return min_ratio + (1 - min_ratio) * (1 + std::cos(std::numbers::pi * p)) / 2;
}

}  // namespace rowan
