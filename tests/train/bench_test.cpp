#include <gmock/gmock.h>
#include <sys/mman.h>

#include <cmath>
#include <set>

#include "core/rng.h"
#include "tests/support/small_run.h"
#include "train/bench_embedding.h"
#include "train/bench_step.h"
#include "train/machine_rates.h"
#include "train/plan.h"
#include "train/resident_memory.h"
#include "train/step_cost.h"

namespace rowan {
namespace {

TEST(Quantile, interpolates_between_neighbours) {
  EXPECT_DOUBLE_EQ(median_of({3, 1, 2}), 2);
  EXPECT_DOUBLE_EQ(median_of({4, 1, 2, 3}), 2.5);
  EXPECT_DOUBLE_EQ(quantile_of({0, 10}, 0.1), 1);
  EXPECT_DOUBLE_EQ(quantile_of({5}, 0.9), 5);
}

TEST(StepCost, products_of_weights_add_up_to_six_flops_a_weight_and_token) {
  GptConfig c;
  c.d_model = 32, c.n_layer = 3, c.n_head = 4, c.n_kv_head = 2, c.vocab_size = 40, c.max_seq_len = 16;
  c.mlp = "swiglu", c.bias = false, c.positions = "rope", c.norm = "rmsnorm";
  c.resolve();
  const StepShape shape{c, 2, 16};
  double flops = 0;
  for (const StepProduct& p : step_products(shape)) flops += static_cast<double>(p.count) * p.flops();
  const int64_t norms = (2 * c.n_layer + 1) * c.d_model;
  EXPECT_DOUBLE_EQ(flops, 6.0 * static_cast<double>(shape.tokens() * (parameter_count(c) - norms)));
}

TEST(BenchStep, times_the_steps_it_is_asked_for_and_accounts_for_their_time) {
  const test::SmallRun files;
  const StepBench r = bench_step(with_known_vocabulary(files.config()), {.steps = 3, .profile = true});
  EXPECT_EQ(r.steps, 3);
  EXPECT_EQ(r.tokens_per_step, 36);
  EXPECT_NEAR(r.tokens_per_s * r.step_ms * 1e-3, 36, 1e-6);
  EXPECT_NEAR(r.gflops * 1e9 / r.tokens_per_s, r.flops_per_token, 1e-3);
  EXPECT_GT(r.share_of_sgemm(), 0);
  EXPECT_GE(r.peak_rss_bytes, r.pool_peak_bytes);
  std::set<std::string> seen;
  for (const OpTime& e : r.profile) {
    seen.insert(e.op + "/" + e.pass);
    EXPECT_GT(e.calls, 0);
  }
  for (const char* op : {"gather/forward", "gather/backward", "linear (48,16)/forward", "linear (48,16)/backward",
                         "attention/backward", "layer_norm/forward", "head_cross_entropy/forward", "clip and update/"})
    EXPECT_TRUE(seen.contains(op)) << op;
}

TEST(BenchStep, counts_the_products_of_a_sampled_head) {
  const test::SmallRun files;
  const Config config = with_known_vocabulary(files.config({"train.loss=sampled", "train.sampled.negatives=7"}));
  const StepBench r = bench_step(config, {.steps = 2, .profile = true});
  double flops = 0;
  for (const OpTime& e : r.profile)
    if (e.op == "sampled_softmax") flops += e.flops;
  EXPECT_EQ(flops, 2 * 36 * 6.0 * 8 * 16);  // steps, tokens, the target and 7 drawn, 16 wide
}

TEST(PeakRss, is_that_since_it_was_reset) {
  constexpr size_t kBytes = size_t{96} << 20;
  const auto touch = [] {
    auto* p = static_cast<char*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(p, MAP_FAILED);
    for (size_t i = 0; i < kBytes; i += 4096) p[i] = 1;
    munmap(p, kBytes);
  };
  touch();
  const int64_t before = peak_rss_bytes();
  reset_peak_rss();
  const int64_t after = peak_rss_bytes();
  EXPECT_LT(after, before - static_cast<int64_t>(kBytes) / 2);
  touch();
  EXPECT_GT(peak_rss_bytes(), after + static_cast<int64_t>(kBytes) / 2);
}

TEST(BenchEmbedding, counts_rows_and_puts_the_parts_together) {
  const EmbeddingBench r = bench_embedding({.vocab = 50, .dim = 8, .tokens = 400, .zipf = 0, .repeats = 3});
  EXPECT_EQ(r.repeats, 3);
  EXPECT_EQ(r.touched_rows, 50);  // 400 draws leave none of 50 out
  EXPECT_NEAR(r.limit_ms * r.copy_gb_per_s * 1e6, (28.0 * 50 + 8.0 * 400) * 8, 1e-6);
  EXPECT_NEAR(r.gb_per_s / r.copy_gb_per_s, 1 / r.ratio_to_limit(), 1e-9);
  EXPECT_THROW(bench_embedding({.rule = "no such rule"}), Error);
}

}  // namespace
}  // namespace rowan
