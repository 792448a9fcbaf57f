// ZipfSampler: ranks 1..n with probability in proportion to rank^-s, in constant memory and time whatever n is.
//
// Rejection-inversion: Hoermann, Derflinger, "Rejection-inversion to generate variates from monotone discrete distributions", ACM
// TOMACS 6 (1996). The density is bounded by its integral, which has an inverse in closed form; more than 9 of 10 tries are taken.
// A draw is a function of (key, number) alone, so draws can be made in any order and by any thread.
#pragma once

#include <cstdint>

#include "core/rng.h"

namespace rowan {

class ZipfSampler {
 public:
  ZipfSampler(int64_t n, double exponent);  // Error unless 1 <= n < 2^31 and the exponent is finite and >= 0 (0: all ranks alike)

  int64_t n() const { return n_; }
  // A rank in [1, n]. Numbers below 2^48 draw independently of each other.
  int64_t rank(const RandomKey& key, uint64_t number) const;
  double probability(int64_t rank) const;  // rank^-s / sum of k^-s over k = 1..n; relative error below 1e-12

 private:
  double integral(double x) const;          // of t^-s from 1 to x
  double inverse_integral(double y) const;  // the x with integral(x) = y
  double weight(double x) const;            // x^-s
  double sum_of_weights() const;

  int64_t n_;
  double s_, first_, last_, squeeze_, sum_;
};

}  // namespace rowan
