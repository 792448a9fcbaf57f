// rowan plan, bench step and bench embedding from the command line: what they print, not how fast this machine is.
#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/run_command.h"
#include "tests/support/temp_dir.h"

namespace rowan::test {
namespace {

using Json = nlohmann::json;

CommandResult rowan(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), ROWAN_BINARY);
  return run_command(arguments, {});
}

class Measure : public ::testing::Test {
 protected:
  Measure() {
    std::ofstream(config()) << "[model]\nd_model = 16\nn_layer = 2\nn_head = 2\nmax_seq_len = 8\n"
                               "[data]\nseq_len = 8\nbatch_size = 2\n[train]\nsteps = 5\n";
  }
  std::string config() const { return dir_.file("small.toml"); }

 private:
  TempDir dir_;
};

TEST_F(Measure, plan_prints_one_object_with_sizes_speed_and_time) {
  const CommandResult result = rowan({"plan", config(), "--set", "model.vocab_size=30", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json plan = Json::parse(result.out);
  // By hand: tables 30*16 + 8*16, norms 5 * 2*16, and a block's layers with biases: 48*17 + 16*17 + 64*17 + 16*65.
  EXPECT_EQ(plan["parameters"], 608 + 160 + 2 * (816 + 272 + 1088 + 1040));
  EXPECT_EQ(plan["tokens_per_step"], 16);
  EXPECT_EQ(plan["steps"], 5);
  EXPECT_NEAR(plan["seconds"].get<double>(), 5e-3 * plan["step_ms"].get<double>(), 1e-6);
  EXPECT_GT(plan["gemm_gflops"].get<double>(), 0);
  EXPECT_GT(plan["peak_rss_bytes"].get<int64_t>(), plan["memory"]["pool_peak_bytes"].get<int64_t>());
}

TEST_F(Measure, plan_counts_no_more_rows_than_the_table_has) {
  const CommandResult result = rowan({"plan", config(), "--set", "model.vocab_size=3", "--set", "model.tied=false"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, ::testing::HasSubstr("the token table is updated by rows: at most 3 of 3 in a step"));
}

TEST_F(Measure, plan_without_a_text_says_that_the_vocabulary_is_not_known) {
  const CommandResult result = rowan({"plan", config()});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, ::testing::HasSubstr("vocab_size"));
  EXPECT_THAT(result.err, ::testing::HasSubstr("\nhint: "));
}

TEST_F(Measure, bench_step_needs_no_text_and_prints_the_agreed_fields) {
  const CommandResult result = rowan({"bench", "step", "--config", config(), "--steps", "2", "--profile", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json bench = Json::parse(result.out);
  for (const char* field : {"step_ms", "gflops", "sgemm_gflops", "share_of_sgemm", "tokens_per_s", "peak_rss_bytes"})
    EXPECT_GT(bench[field].get<double>(), 0) << field;
  EXPECT_NEAR(bench["share_of_sgemm"].get<double>(), bench["gflops"].get<double>() / bench["sgemm_gflops"].get<double>(), 1e-9);
  EXPECT_EQ(bench["steps"], 2);
  EXPECT_GT(bench["profile"].size(), 5u);
}

TEST_F(Measure, bench_embedding_prints_the_agreed_fields) {
  const CommandResult result = rowan({"bench", "embedding", "--vocab", "1000", "--dim", "16", "--tokens", "64", "--zipf", "1.1",
                                      "--rule", "sparse_adam", "--repeats", "3", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json bench = Json::parse(result.out);
  for (const char* field : {"touched_rows", "total_ms", "gather_ms", "update_ms", "limit_ms", "ratio_to_limit", "gb_per_s",
                            "copy_gb_per_s", "plain_ms", "ratio_to_plain"})
    EXPECT_GT(bench[field].get<double>(), 0) << field;
  EXPECT_LE(bench["touched_rows"].get<double>(), 64);
  EXPECT_EQ(bench["same_ids"], false);
  const CommandResult same = rowan({"bench", "embedding", "--vocab", "1000", "--dim", "16", "--tokens", "64", "--rule", "adam",
                                    "--repeats", "3", "--same-ids", "--json"});
  EXPECT_EQ(Json::parse(same.out)["same_ids"], true) << same.err;
}

TEST_F(Measure, bench_embedding_names_the_rules_when_there_is_no_such_one) {
  const CommandResult result = rowan({"bench", "embedding", "--rule", "sparse_adan"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, ::testing::HasSubstr("sparse_adam"));
}

}  // namespace
}  // namespace rowan::test
