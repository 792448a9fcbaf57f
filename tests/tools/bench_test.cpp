// rowan bench, as a user runs it. What it measures is not compared: no test depends on the machine's speed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "core/real.h"
#include "tests/support/run_command.h"
#include "train/bench_gemm.h"

namespace rowan::test {
namespace {

using ::testing::HasSubstr;

TEST(BenchCommand, gemm_prints_one_json_object_whose_totals_follow_from_its_products) {
  const std::string model = default_gemm_bench_models().back().name;
  const CommandResult result =
      run_command({ROWAN_BINARY, "bench", "gemm", "--model", model, "--rounds", "1", "--threads", "1", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json out = nlohmann::json::parse(result.out);
  EXPECT_EQ(out["threads"], 1);
  EXPECT_EQ(out["rounds"], 1);
  std::set<std::string> passes;
  for (const auto& p : out["products"]) {
    EXPECT_EQ(p["model"], model);
    passes.insert(p["pass"]);
    const double operations = 2.0 * p["m"].get<double>() * p["n"].get<double>() * p["k"].get<double>();
    EXPECT_NEAR(p["gflops"].get<double>() * p["median_ms"].get<double>() * 1e6 / operations, 1, 1e-6) << p;
  }
  EXPECT_EQ(passes, (std::set<std::string>{"forward", "dx", "dw"}));
  ASSERT_FALSE(out["totals"].empty());
  for (const auto& t : out["totals"]) {
    double ms = 0;
    for (const auto& p : out["products"]) {
      if (p["path"] == t["path"]) ms += p["count"].get<double>() * p["median_ms"].get<double>();
    }
    EXPECT_NEAR(t["ms"].get<double>() / ms, 1, 1e-6) << t;
  }
}

TEST(BenchCommand, generate_reads_every_weight_but_the_positions_once_a_token) {
  const CommandResult result = run_command({ROWAN_BINARY, "bench", "generate", "--config", ROWAN_SOURCE_DIR "/configs/gpt_10m.toml",
                                            "--set", "model.n_layer=1", "--prompt", "2", "--tokens", "3", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json out = nlohmann::json::parse(result.out);
  const double d = 384, block = 12 * d * d + 2 * d, read = 65 * d + block + d + d;  // tied table, block, last norm, one position
  EXPECT_EQ(out["weight_bytes"].get<double>(), read * static_cast<double>(sizeof(Real)));
  EXPECT_EQ(out["tokens"], 3);
  const double limit = out["weight_bytes"].get<double>() / out["copy_gb_per_s"].get<double>() / 1e6;
  EXPECT_NEAR(out["limit_ms"].get<double>() / limit, 1, 1e-9);
  EXPECT_NEAR(out["share_of_limit"].get<double>() * out["token_ms"].get<double>() / limit, 1, 1e-9);
}

TEST(BenchCommand, generate_beyond_the_learned_positions_is_refused_with_both_numbers) {
  const CommandResult result = run_command({ROWAN_BINARY, "bench", "generate", "--config", ROWAN_SOURCE_DIR "/configs/gpt_10m.toml",
                                            "--set", "model.n_layer=1", "--tokens", "300"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err,
              HasSubstr("a prompt of 16, a token to warm up and 300 measured ones are more than model.max_seq_len = 256"));
}

TEST(BenchCommand, generate_without_lengths_stays_within_the_learned_positions) {
  const CommandResult result =
      run_command({ROWAN_BINARY, "bench", "generate", "--config", ROWAN_SOURCE_DIR "/configs/smoke.toml", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json out = nlohmann::json::parse(result.out);
  EXPECT_EQ(out["prompt_tokens"].get<int>() + 1 + out["tokens"].get<int>(), 32);  // max_seq_len
}

TEST(BenchCommand, an_unknown_model_is_answered_by_the_known_ones) {
  const CommandResult result = run_command({ROWAN_BINARY, "bench", "gemm", "--model", "124N/256"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("rowan: error: [bench gemm] there is no model '124N/256'; models: "));
  EXPECT_THAT(result.err, HasSubstr("\nhint: did you mean '124M/256'?\n"));
}

}  // namespace
}  // namespace rowan::test
