// Reductions whose order is fixed: element i goes to lane i % kLanes, and the lanes are added as a tree. Instruction sets with
// vectors of 4, 8 or 16 numbers then add the same numbers in the same order, and give the same bits.
#pragma once

#include <cstdint>

#include "core/kernels/vectorize.h"

namespace rowan {

inline constexpr int64_t kLanes = 16;

// Sum of term(i) for i in [0, n), in T. For use inside ROWAN_VECTORIZED functions; term must be a plain expression.
template <class T, class Term>
ROWAN_INLINE T lane_sum(int64_t n, Term term) {
  T lane[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int64_t l = 0; l < kLanes; ++l) lane[l] += term(i + l);
  for (int64_t l = 0; i + l < n; ++l) lane[l] += term(i + l);
  for (int64_t width = kLanes / 2; width > 0; width /= 2)
    for (int64_t l = 0; l < width; ++l) lane[l] += lane[l + width];
  return lane[0];
}

// Two sums over the same i in one pass: of a(i) and of b(i).
template <class T>
struct TwoSums {
  T first, second;
};
template <class T, class TermA, class TermB>
ROWAN_INLINE TwoSums<T> lane_sums(int64_t n, TermA a, TermB b) {
  T lane_a[kLanes] = {}, lane_b[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    T term_a[kLanes], term_b[kLanes];
    ROWAN_ONE_VECTOR
    for (int64_t l = 0; l < kLanes; ++l) term_a[l] = a(i + l);
    ROWAN_ONE_VECTOR
    for (int64_t l = 0; l < kLanes; ++l) term_b[l] = b(i + l);
    ROWAN_ONE_VECTOR
    for (int64_t l = 0; l < kLanes; ++l) lane_a[l] += term_a[l];
    ROWAN_ONE_VECTOR
    for (int64_t l = 0; l < kLanes; ++l) lane_b[l] += term_b[l];
  }
  for (int64_t l = 0; i + l < n; ++l) {
    lane_a[l] += a(i + l);
    lane_b[l] += b(i + l);
  }
  for (int64_t width = kLanes / 2; width > 0; width /= 2)
    for (int64_t l = 0; l < width; ++l) {
      lane_a[l] += lane_a[l + width];
      lane_b[l] += lane_b[l + width];
    }
  return {lane_a[0], lane_b[0]};
}

}  // namespace rowan
