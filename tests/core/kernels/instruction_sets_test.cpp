// The library picks a version of each kernel for the processor it runs on. This file compiles the same kernels once more, for the
// plain instruction set only, into a namespace of their own: both must give the same bits.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#define rowan rowan_plain
#ifndef ROWAN_SANITIZED
#define ROWAN_SANITIZED  // one version only (core/kernels/vectorize.h)
#endif
#include "core/kernels/elementwise.cpp"
#include "core/kernels/lanes.h"
#undef rowan

namespace rowan {  // the library's, whose headers this file has read under the other name
using rowan_plain::Real;
void gelu_forward(const Real*, Real*, int64_t);
void gelu_backward(const Real*, const Real*, Real*, int64_t);
void gelu_tanh_forward(const Real*, Real*, int64_t);
void gelu_tanh_backward(const Real*, const Real*, Real*, int64_t);
void silu_forward(const Real*, Real*, int64_t);
void silu_backward(const Real*, const Real*, Real*, int64_t);
double sum_of_squares(const Real*, int64_t);
}  // namespace rowan

namespace {

using Values = std::vector<rowan::Real>;

Values waves(size_t n, double frequency, double size) {
  Values x(n);
  for (size_t i = 0; i < n; ++i) x[i] = static_cast<rowan::Real>(size * std::sin(frequency * static_cast<double>(i + 1)));
  return x;
}

TEST(InstructionSets, activations_have_the_same_bits_in_every_version) {
  const Values x = waves(1013, 0.7, 12), dy = waves(1013, 1.3, 1);
  const auto n = static_cast<int64_t>(x.size());
  Values a(x.size()), b(x.size());
  const auto expect_same = [&](auto plain, auto dispatched) {
    plain(a.data());
    dispatched(b.data());
    EXPECT_EQ(a, b);
  };
#define EXPECT_SAME_ACTIVATION(name)                                                     \
  expect_same([&](auto* y) { rowan_plain::name##_forward(x.data(), y, n); },             \
              [&](auto* y) { rowan::name##_forward(x.data(), y, n); });                  \
  expect_same([&](auto* y) { rowan_plain::name##_backward(x.data(), dy.data(), y, n); }, \
              [&](auto* y) { rowan::name##_backward(x.data(), dy.data(), y, n); })
  EXPECT_SAME_ACTIVATION(gelu);
  EXPECT_SAME_ACTIVATION(gelu_tanh);
  EXPECT_SAME_ACTIVATION(silu);
#undef EXPECT_SAME_ACTIVATION
}

TEST(InstructionSets, lane_sums_have_the_same_bits_in_every_version) {
  const Values x = waves(1013, 0.7, 12);
  for (int64_t n = 0; n <= 1013; n += 1 + n / 7) {
    const double plain = rowan_plain::lane_sum<double>(n, [&](int64_t i) {
      const auto v = static_cast<double>(x[static_cast<size_t>(i)]);
      return v * v;
    });
    EXPECT_EQ(rowan::sum_of_squares(x.data(), n), plain) << n;
  }
}

}  // namespace
