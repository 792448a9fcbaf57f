#include "core/zipf.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace rowan {
namespace {

// Tries that a number may take of a key's positions. Each is taken with probability above 0.9: that many fail never.
constexpr uint64_t kTries = uint64_t{1} << 16;

double expm1_ratio(double t) {  // (e^t - 1) / t
  return std::abs(t) > 1e-8 ? std::expm1(t) / t : 1 + t / 2;
}

double log1p_ratio(double t) {  // log(1 + t) / t
  return std::abs(t) > 1e-8 ? std::log1p(t) / t : 1 - t / 2;
}

}  // namespace

ZipfSampler::ZipfSampler(int64_t n, double exponent) : n_(n), s_(exponent) {
  ROWAN_CHECK(n >= 1 && n < int64_t{1} << 31, "[zipf] a vocabulary of ", n, " ids; expected 1 or more, below 2^31");
  ROWAN_CHECK(std::isfinite(exponent) && exponent >= 0, "[zipf] exponent ", exponent, "; expected 0 or more");
  // The integral over [k - 1/2, k + 1/2] bounds k^-s from above; rank 1, the largest, takes its own weight instead.
  first_ = integral(1.5) - 1;
  last_ = integral(static_cast<double>(n) + 0.5);
  // Right of this distance from k the integral is known to be within k's weight, without evaluating it.
  squeeze_ = 2 - inverse_integral(integral(2.5) - weight(2));
  sum_ = sum_of_weights();
}

// With t = (1 - s) log x: (x^(1-s) - 1) / (1 - s) = log x * (e^t - 1) / t, which has no cancellation near s = 1.
double ZipfSampler::integral(double x) const {
  const double log_x = std::log(x);
  return expm1_ratio((1 - s_) * log_x) * log_x;
}

double ZipfSampler::inverse_integral(double y) const {
  const double t = std::max(-1.0, y * (1 - s_));  // rounding may take it just below -1
  return std::exp(log1p_ratio(t) * y);
}

double ZipfSampler::weight(double x) const {
  return std::exp(-s_ * std::log(x));
}

int64_t ZipfSampler::rank(const RandomKey& key, uint64_t number) const {
  double x = 1;
  for (uint64_t attempt = 0; attempt < kTries; ++attempt) {
    const double u = last_ + random_uniform(key, number * kTries + attempt) * (first_ - last_);
    x = inverse_integral(u);
    const double k = std::clamp(std::round(x), 1.0, static_cast<double>(n_));
    if (k - x <= squeeze_ || u >= integral(k + 0.5) - weight(k)) return static_cast<int64_t>(k);
  }
  return std::clamp<int64_t>(std::llround(x), 1, n_);
}

// Terms one by one up to a bound, and the rest by Euler-Maclaurin: integral, end terms, and two derivatives.
double ZipfSampler::sum_of_weights() const {
  constexpr int64_t kExact = 1000;
  double sum = 0;
  for (int64_t k = std::min(n_, kExact); k >= 1; --k) sum += weight(static_cast<double>(k));
  if (n_ <= kExact) return sum;
  const double a = static_cast<double>(kExact), b = static_cast<double>(n_);
  const auto first = [&](double x) { return -s_ * weight(x) / x; };
  const auto third = [&](double x) { return -s_ * (s_ + 1) * (s_ + 2) * weight(x) / (x * x * x); };
  return sum + integral(b) - integral(a) + (weight(b) - weight(a)) / 2 + (first(b) - first(a)) / 12 - (third(b) - third(a)) / 720;
}

double ZipfSampler::probability(int64_t rank) const {
  ROWAN_ASSERT(rank >= 1 && rank <= n_);
  return weight(static_cast<double>(rank)) / sum_;
}

}  // namespace rowan
