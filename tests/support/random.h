// Random inputs of tests: a pure function of the site, so that a failure repeats.
#pragma once

#include "core/ids.h"
#include "core/rng.h"

namespace rowan::test {

inline RandomKey test_key(uint32_t site) {
  return {.seed = 20240229, .purpose = Purpose::kTest, .site = site};
}

inline Tensor random_tensor(const Shape& shape, uint32_t site, double deviation = 1, double mean = 0) {
  Tensor t(shape);
  fill_normal(t, test_key(site), mean, deviation);
  return t;
}

// Ids in [0, rows), repeated ones included as chance has it.
inline Ids random_ids(const Shape& shape, int64_t rows, uint32_t site) {
  Ids ids(shape);
  for (int64_t i = 0; i < ids.size(); ++i)
    ids[i] = static_cast<int32_t>(random_below(test_key(site), static_cast<uint64_t>(i), static_cast<uint64_t>(rows)));
  return ids;
}

}  // namespace rowan::test
