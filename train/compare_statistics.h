// Statistics of a comparison: means with intervals, tests of paired differences, and a correction for many of them.
//
// Few seeds are the rule, so the t interval carries the weight: it is exact for normal differences. The bootstrap makes no such
// assumption, but of n values there are only (2n-1 choose n) different resamples (10 for n = 3), and its interval is too narrow
// then.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace rowan {

struct Interval {
  double low = 0, high = 0;
  bool operator==(const Interval&) const = default;
};

double mean_of(std::span<const double> values);       // of at least one
double deviation_of(std::span<const double> values);  // sample standard deviation (n - 1), of at least two

// Mean +- t * deviation / sqrt(n), with Student's t of n - 1 degrees of freedom. At least two values.
Interval t_interval(std::span<const double> values, double confidence);
// Two-sided p value of Student's test that the mean is 0. Without any deviation: 1 when the mean is 0, else 0.
double t_test(std::span<const double> values);

// The same of the difference of two means, mean(a) - mean(b), of samples that are not paired and may vary by different amounts
// (Welch 1947). At least two values each.
Interval welch_interval(std::span<const double> a, std::span<const double> b, double confidence);
double welch_test(std::span<const double> a, std::span<const double> b);

// Percentile interval of the mean over resamples with replacement (Efron 1979), drawn by (seed, resample, place) alone.
Interval bootstrap_interval(std::span<const double> values, double confidence, int64_t resamples, uint64_t seed);
// Of mean(a) - mean(b), each resampled by itself.
Interval bootstrap_interval(std::span<const double> a, std::span<const double> b, double confidence, int64_t resamples,
                            uint64_t seed);

// Holm's step-down adjustment (Holm 1979): p values, in the given order, that can be compared with a level for the whole family.
std::vector<double> holm_adjusted(std::span<const double> p_values);

}  // namespace rowan
