// Dropout's mask: a pure function of (key, element index), so that backward computes it again instead of keeping it.
#pragma once

#include <cstdint>

#include "core/real.h"
#include "core/rng.h"

namespace rowan {

// out[i] = 0 with probability p, else 1 / (1 - p), for element first_index + i. p in [0, 1).
//
// Element e is dropped when the e % 4-th word of philox(key, e / 4) is below p * 2^32: p is met to 2^-32.
void dropout_scale(const RandomKey& key, double p, uint64_t first_index, int64_t n, Real* out);

}  // namespace rowan
