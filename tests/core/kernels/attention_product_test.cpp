#include "core/kernels/attention_product.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/support/compare.h"
#include "tests/support/random.h"

namespace rowan {
namespace {

using test::random_tensor;

struct Sizes {
  int64_t m, n, k;
};

// Rows around every version's block (8, 6, 4), columns of one and more registers, any depth.
std::vector<Sizes> sizes() {
  std::vector<Sizes> all;
  for (int64_t m : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 23, 64})
    for (int64_t n : {16, 32, 48, 80})
      for (int64_t k : {0, 1, 2, 33, 64}) all.push_back({m, n, k});
  return all;
}

// Operands stand in wider arrays, whose other elements must neither be read into the result nor be written.
constexpr int64_t kGap = 3;

TEST(AttentionProduct, every_version_agrees_with_plain_loops) {
  for (const TileProductVersion& version : tile_product_versions())
    for (const auto& [m, n, k] : sizes())
      for (bool transposed : {false, true})
        for (bool accumulate : {false, true}) {
          const int64_t lda = (transposed ? m : k) + kGap, ldb = n + kGap, ldc = n + kGap;
          const Tensor a = random_tensor({(transposed ? k : m) + 1, lda}, 1), b = random_tensor({k + 1, ldb}, 2);
          Tensor c = random_tensor({m + 1, ldc}, 3);
          std::vector<double> expected = test::as_doubles(c);
          for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 0; j < n; ++j) {
              double sum = accumulate ? expected[static_cast<size_t>(i * ldc + j)] : 0;
              for (int64_t p = 0; p < k; ++p)
                sum += static_cast<double>(a.data()[transposed ? p * lda + i : i * lda + p]) *
                       static_cast<double>(b.data()[p * ldb + j]);
              expected[static_cast<size_t>(i * ldc + j)] = sum;
            }
          (transposed ? version.transposed : version.plain)(m, n, k, {a.data(), lda}, {b.data(), ldb}, c.data(), ldc, accumulate);
          test::expect_close(
              c, expected, kRealIsDouble ? 1e-14 : 1e-6,
              join_text(version.name, " ", m, "x", n, "x", k, transposed ? " transposed" : "", accumulate ? " +=" : ""));
        }
}

TEST(AttentionProduct, a_row_has_the_same_bits_whatever_rows_it_is_computed_with) {
  const int64_t n = 48, k = 70;
  const Tensor a = random_tensor({19, k}, 1), b = random_tensor({k, n}, 2);
  for (const TileProductVersion& version : tile_product_versions()) {
    Tensor all({19, n}), one({1, n});
    version.plain(19, n, k, {a.data(), k}, {b.data(), n}, all.data(), n, false);
    for (int64_t i = 0; i < 19; ++i) {
      version.plain(1, n, k, {a.data() + i * k, k}, {b.data(), n}, one.data(), n, false);
      for (int64_t j = 0; j < n; ++j) ASSERT_EQ(one.data()[j], all.data()[i * n + j]) << version.name << " row " << i;
    }
  }
}

TEST(AttentionProduct, the_version_in_use_is_the_first) {
  const int64_t n = 16, k = 100;
  const Tensor a = random_tensor({4, k}, 1), b = random_tensor({k, n}, 2);
  Tensor used({4, n}), first({4, n});
  tile_product(4, n, k, {a.data(), k}, {b.data(), n}, used.data(), n, false);
  tile_product_versions().front().plain(4, n, k, {a.data(), k}, {b.data(), n}, first.data(), n, false);
  EXPECT_TRUE(test::same_bits(used, first));
}

}  // namespace
}  // namespace rowan
