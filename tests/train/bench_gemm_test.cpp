#include "train/bench_gemm.h"

#include <gmock/gmock.h>

#include "core/error.h"
#include "core/real.h"

namespace rowan {
namespace {

TEST(BenchGemm, measures_every_product_of_a_model_on_every_path_and_totals_them) {
  GemmBenchOptions options;
  options.models = {{"tiny", 16, 8, 2, 32}};
  options.rounds = 2;
  options.settle_seconds = 0;
  options.sample_seconds = 1e-4;
  const std::vector<GemmBenchRow> rows = bench_gemm(options);
  const size_t paths = kRealIsDouble ? 2 : 3;
  ASSERT_EQ(rows.size(), 5 * 3 * paths);  // layers, passes, paths
  EXPECT_EQ(rows.front().layer, "qkv");
  EXPECT_EQ(rows.front().path, "rowan");
  EXPECT_EQ(rows.front().count, 2);
  EXPECT_EQ(rows.back().layer, "head");
  EXPECT_EQ(rows.back().pass, "dw");
  EXPECT_EQ(rows.back().count, 1);
  EXPECT_EQ((std::vector<int64_t>{rows.back().m, rows.back().n, rows.back().k}), (std::vector<int64_t>{32, 8, 16}));
  for (const GemmBenchRow& row : rows)
    EXPECT_NEAR(row.gflops * row.median_ms * 1e6 / (2.0 * static_cast<double>(row.m * row.n * row.k)), 1, 1e-9);
  EXPECT_EQ(total_by_model(rows).size(), paths);
}

TEST(BenchGemm, a_total_weighs_products_by_how_often_a_step_does_them) {
  GemmBenchRow a{.model = "m", .m = 10, .n = 10, .k = 10, .count = 3, .path = "rowan", .median_ms = 2};
  GemmBenchRow b{.model = "m", .m = 20, .n = 10, .k = 10, .count = 1, .path = "rowan", .median_ms = 4};
  const std::vector<GemmBenchTotal> totals = total_by_model({a, b});
  ASSERT_EQ(totals.size(), 1u);
  EXPECT_DOUBLE_EQ(totals[0].ms, 10);
  EXPECT_DOUBLE_EQ(totals[0].gflops, (3 * 2000 + 4000) / 10e-3 / 1e9);
}

TEST(BenchGemm, refuses_sizes_that_make_no_product) {
  GemmBenchOptions options;
  options.models = {{"empty", 0, 8, 1, 0}};
  EXPECT_THROW(bench_gemm(options), Error);
  options.models = {{"tiny", 1, 8, 1, 0}};
  options.rounds = 0;
  EXPECT_THROW(bench_gemm(options), Error);
}

}  // namespace
}  // namespace rowan
