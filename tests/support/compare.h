// Comparing arrays of numbers, and a thing with itself at several thread counts.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/parallel.h"
#include "core/tensor.h"

namespace rowan::test {

template <class Range>
std::vector<double> as_doubles(const Range& values) {
  return std::vector<double>(std::begin(values), std::end(values));
}
inline std::vector<double> as_doubles(const Tensor& t) {
  return as_doubles(t.values());
}

// Same length and |actual - expected| <= tolerance * max|expected| for every element. NaN and infinity are close to nothing,
// an expected array of zeros only to zeros.
template <class Actual, class Expected>
[[nodiscard]] ::testing::AssertionResult is_close(const Actual& actual, const Expected& expected, double relative_to_largest) {
  const std::vector<double> a = as_doubles(actual), e = as_doubles(expected);
  if (a.size() != e.size()) return ::testing::AssertionFailure() << a.size() << " values where " << e.size() << " are expected";
  double largest = 0;
  for (double x : e) largest = std::max(largest, std::abs(x));
  size_t wrong = 0, worst = 0;
  double worst_error = -1;
  for (size_t i = 0; i < a.size(); ++i) {
    const double error = std::abs(a[i] - e[i]);
    if (error <= relative_to_largest * largest) continue;  // false for NaN
    ++wrong;
    if (std::isnan(error) || error > worst_error) {
      worst = i;
      worst_error = std::isnan(error) ? INFINITY : error;
    }
  }
  if (wrong == 0) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << wrong << " of " << a.size() << " values differ; worst at " << worst << ": " << a[worst]
                                       << " where " << e[worst] << " is expected, off by " << worst_error / largest
                                       << " of the largest (" << largest << "), allowed " << relative_to_largest;
}

template <class Actual, class Expected>
void expect_close(const Actual& actual, const Expected& expected, double relative_to_largest, const std::string& what = "") {
  EXPECT_TRUE(is_close(actual, expected, relative_to_largest)) << what;
}

[[nodiscard]] inline ::testing::AssertionResult same_bits(const Tensor& a, const Tensor& b) {
  if (!(a.shape() == b.shape())) return ::testing::AssertionFailure() << "shapes " << a.shape() << " and " << b.shape();
  for (int64_t i = 0; i < a.size(); ++i)
    if (std::memcmp(a.data() + i, b.data() + i, sizeof(Real)) != 0)
      return ::testing::AssertionFailure() << "element " << i << ": " << a.data()[i] << " and " << b.data()[i];
  return ::testing::AssertionSuccess();
}

// Runs the same thing with 1, 2, 3, 4 and 7 threads: every tensor that it returns must have the same bits each time.
template <class Run>  // std::vector<Tensor>()
[[nodiscard]] ::testing::AssertionResult same_bits_for_any_thread_count(Run&& run) {
  std::vector<Tensor> first;
  for (int count : {1, 2, 3, 4, 7}) {
    const Threads threads(count);
    const std::vector<Tensor> now = run();
    if (count == 1) {
      for (const Tensor& t : now) first.push_back(t.clone());
      continue;
    }
    if (now.size() != first.size())
      return ::testing::AssertionFailure() << now.size() << " results where 1 thread gave " << first.size();
    for (size_t k = 0; k < now.size(); ++k)
      if (const auto same = same_bits(now[k], first[k]); !same)
        return ::testing::AssertionFailure() << "result " << k << " with " << count << " threads: " << same.message();
  }
  return ::testing::AssertionSuccess();
}

}  // namespace rowan::test
