#include "core/kernels/attention_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/compare.h"
#include "tests/support/random.h"

namespace rowan {
namespace {

using test::random_tensor;

constexpr double kTolerance = kRealIsDouble ? 1e-14 : 1e-6;
constexpr Real kInfinity = std::numeric_limits<Real>::infinity();

TEST(AttentionRows, tiles_of_a_row_join_into_one_softmax) {
  // 5 queries at positions 60..64 over 70 keys, in tiles of 32: rows end inside the second and third tile.
  const int64_t rows = 5, keys = 70, first = 60, width = 32;
  const Tensor scores = random_tensor({rows, keys}, 1, 5);
  std::vector<Real> max(rows, -kInfinity), sum(rows, 0), rescale(rows);
  std::vector<std::vector<double>> p(rows);
  for (int64_t key0 = 0; key0 < first + rows; key0 += width) {
    Tensor tile = Tensor::full({rows, width}, 1e30f);  // what is not visible must not matter
    const ScoreTile view{tile.data(), width, rows, std::min(width, keys - key0), first - key0};
    for (int64_t r = 0; r < rows; ++r) std::copy_n(scores.data() + r * keys + key0, view.visible(r), tile.data() + r * width);
    softmax_tile(view, max.data(), sum.data(), rescale.data());
    for (size_t r = 0; r < rows; ++r) {
      for (double& x : p[r]) x *= static_cast<double>(rescale[r]);
      for (int64_t j = 0; j < view.keys; ++j)
        p[r].push_back(static_cast<double>(tile.row(static_cast<int64_t>(r))[static_cast<size_t>(j)]));
    }
  }
  for (size_t r = 0; r < rows; ++r) {
    const size_t seen = static_cast<size_t>(first) + r + 1;
    double total = 0;
    for (size_t j = 0; j < seen; ++j) total += std::exp(static_cast<double>(scores.data()[r * keys + j]));
    EXPECT_NEAR(static_cast<double>(max[r]) + std::log(static_cast<double>(sum[r])), std::log(total), 10 * kTolerance);
    for (size_t j = 0; j < p[r].size(); ++j) {
      const double expected = j < seen ? std::exp(static_cast<double>(scores.data()[r * keys + j])) / total : 0;
      EXPECT_NEAR(p[r][j] / static_cast<double>(sum[r]), expected, 10 * kTolerance) << r << " " << j;
    }
  }
}

TEST(AttentionRows, the_largest_score_is_found_among_negative_ones_and_zeros) {
  Tensor tile = Tensor::from({1, 16}, std::vector<Real>{-3, -1, -2, -7, -1e30f, -4, -5, -6, -8, -9, -10, -11, -12, -13, -14, -15});
  Real max = -kInfinity, sum = 0, rescale = 0;
  softmax_tile({tile.data(), 16, 1, 16, 15}, &max, &sum, &rescale);
  EXPECT_EQ(max, -1);
  EXPECT_EQ(rescale, 0);
  tile.fill(0);
  softmax_tile({tile.data(), 16, 1, 16, 15}, &max, &sum, &rescale);
  EXPECT_EQ(max, 0);
  EXPECT_NEAR(static_cast<double>(rescale), std::exp(-1.0), kTolerance);
}

TEST(AttentionRows, a_score_that_is_not_a_number_makes_the_sum_not_a_number) {
  const Real nan = std::numeric_limits<Real>::quiet_NaN();
  for (Real bad : {nan, -nan, kInfinity})
    for (size_t place : {size_t{0}, size_t{5}, size_t{15}}) {
      Tensor tile = random_tensor({1, 16}, 3);
      tile.row(0)[place] = bad;
      Real max = -kInfinity, sum = 0, rescale = 0;
      softmax_tile({tile.data(), 16, 1, 16, 15}, &max, &sum, &rescale);
      EXPECT_FALSE(std::isfinite(sum)) << bad << " at " << place;
    }
}

TEST(AttentionRows, transpose_agrees_with_plain_loops) {
  for (int64_t rows : {1, 3, 4, 5, 17, 64})
    for (int64_t n : {1, 2, 4, 7, 33}) {
      const int64_t in_ld = n + 2, out_ld = rows + 3;
      const Tensor in = random_tensor({rows, in_ld}, 4);
      Tensor out = Tensor::zeros({n, out_ld});
      transpose(in.data(), in_ld, rows, n, out.data(), out_ld);
      for (int64_t d = 0; d < n; ++d)
        for (int64_t r = 0; r < out_ld; ++r)
          ASSERT_EQ(out.data()[d * out_ld + r], r < rows ? in.data()[r * in_ld + d] : Real(0)) << rows << "x" << n;
    }
}

}  // namespace
}  // namespace rowan
