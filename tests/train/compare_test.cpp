// Comparisons from end to end, on runs of milliseconds.
#include "train/compare.h"
#include "train/compare_result_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/small_sweep.h"
#include "train/compare_average.h"
#include "train/run_lock.h"

namespace rowan {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

constexpr const char* kArms = R"(
[[arm]]
name = "frozen"
[[arm]]
name = "exact"
set = { "optim.group.0.rule" = "adamw", "optim.group.0.untouched" = "exact" }
[[arm]]
name = "dense"
set = { "optim.group.0.rule" = "adamw", "optim.group.0.untouched" = "dense" }
)";

void drop_times(Json& json) {
  if (json.is_object()) json.erase("time");
  for (auto& item : json)
    if (item.is_structured()) drop_times(item);
}

Json timeless(const std::string& path) {
  Json json = Json::parse(read_text(path, 1 << 24));
  drop_times(json);
  return json;
}

void ignore(const CompareProgress&) {}

TEST(Compare, runs_every_arm_on_the_same_weights_and_data) {
  const test::SmallSweep files;
  const Sweep sweep = load_sweep(files.write("aa_seeds = [8, 9]\n", kArms));
  std::vector<CompareProgress> shown;
  const CompareOutcome outcome = run_comparison(sweep, files.path("out"), [&](const CompareProgress& p) { shown.push_back(p); });
  ASSERT_TRUE(outcome.comparison);
  ASSERT_EQ(shown.size(), 3u * 3 * 2 + 2);
  EXPECT_EQ(shown.back().of, std::ssize(shown));
  std::map<int64_t, std::string> weights, data;
  for (const CompareProgress& p : shown) {
    const RunResult& r = p.outcome.result;
    EXPECT_EQ(weights.emplace(p.seed, r.weights_digest).first->second, r.weights_digest) << p.arm;
    EXPECT_EQ(data.emplace(p.seed, r.data_digest).first->second, r.data_digest) << p.arm;
  }
  EXPECT_NE(weights[1], weights[2]);
  EXPECT_NE(data[1], data[2]);

  const Comparison& c = *outcome.comparison;
  // exact makes up what dense does at every step: the same losses, bit for bit; frozen does not.
  for (size_t p = 0; p < 3; ++p)
    for (size_t s = 0; s < 2; ++s)
      EXPECT_EQ(c.arms[1].points[p].runs[s].validation.loss, c.arms[2].points[p].runs[s].validation.loss);
  EXPECT_NE(c.arms[0].points[1].mean, c.arms[2].points[1].mean);
  const Json json = Json::parse(read_text(files.path("out/results.json"), 1 << 24));
  ASSERT_EQ(json["arms"].size(), 3u);
  for (const Json& arm : json["arms"]) {
    EXPECT_EQ(arm["response"].size(), 3u) << "the whole curve";
    EXPECT_EQ(arm["at_best"]["loss_by_step"].size(), 3u);
    EXPECT_EQ(arm["at_best"]["time"]["loss_by_time"].size(), 3u);
    for (const char* table : {"by_input_frequency", "by_target_frequency", "rows_by_frequency"})
      EXPECT_FALSE(arm["at_best"][table].empty()) << table;
  }
  // D = 8: two moments a row of floats or doubles; exact keeps one integer more.
  const double moments = 16.0 * sizeof(Real);
  EXPECT_EQ(json["arms"][0]["at_best"]["state_bytes_per_row"], moments);
  EXPECT_EQ(json["arms"][1]["at_best"]["state_bytes_per_row"], moments + 4);
  EXPECT_GT(json["arms"][2]["at_best"]["bytes_per_step"].get<double>(), json["arms"][0]["at_best"]["bytes_per_step"].get<double>());
  EXPECT_EQ(json["aa"]["losses"].size(), 2u);
  const std::string csv = read_text(files.path("out/results.csv"), 1 << 20);
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + 18 + 2);
  const std::string table = results_table(sweep, c);
  for (const char* part : {"frozen", "A/A", "never seen", "winner", "state B/row"}) EXPECT_THAT(table, HasSubstr(part));
}

struct Interrupted {};

TEST(Compare, skips_what_is_done_and_ends_with_the_same_results) {
  const test::SmallSweep files;
  const Sweep sweep = load_sweep(files.write("aa_seeds = [8, 9]\n", kArms));
  ASSERT_TRUE(run_comparison(sweep, files.path("whole"), ignore).comparison);
  const auto stop_after = [](int64_t runs) {
    return [runs](const CompareProgress& p) {
      if (p.number == runs) throw Interrupted{};
    };
  };
  EXPECT_THROW(run_comparison(sweep, files.path("parts"), stop_after(7)), Interrupted);
  EXPECT_FALSE(file_exists(files.path("parts/results.json")));
  int64_t done_before = 0;
  const auto count = [&](const CompareProgress& p) { done_before += p.outcome.done_before; };
  ASSERT_TRUE(run_comparison(sweep, files.path("parts"), count).comparison);
  EXPECT_EQ(done_before, 7);
  EXPECT_EQ(timeless(files.path("parts/results.json")), timeless(files.path("whole/results.json")));
}

TEST(Compare, refuses_a_winner_at_the_edge_of_its_grid) {
  const test::SmallSweep files;
  const char* arms = "[[arm]]\nname = \"a\"\n[[arm]]\nname = \"b\"\ngrid = { \"optim.group.0.lr\" = [1e-6, 1e-5] }\n";
  const Sweep sweep = load_sweep(files.write(arms));
  const CompareOutcome outcome = run_comparison(sweep, files.path("out"), ignore);
  const ArmSummary& edge = outcome.comparison->arms[1];
  ASSERT_TRUE(edge.best);
  EXPECT_THAT(edge.refused, HasSubstr("optim.group.0.lr"));
  const Json json = timeless(files.path("out/results.json"));
  EXPECT_TRUE(json["arms"][1]["winner"].is_null());
  EXPECT_FALSE(json["arms"][1]["best"].is_null());
  EXPECT_FALSE(json["differences"][0]["between_winners"].get<bool>());
  EXPECT_THAT(results_table(sweep, *outcome.comparison), HasSubstr("no winner: its best optim.group.0.lr"));
}

// What analysis makes of losses that are written down: results[arm][point][seed].
Comparison compare_losses(const Sweep& sweep, const std::vector<std::vector<std::vector<double>>>& losses) {
  std::vector<std::vector<std::vector<RunResult>>> results;
  for (const auto& arm : losses) {
    results.emplace_back();
    for (const auto& point : arm) {
      results.back().emplace_back();
      for (double loss : point) {
        RunResult run;
        run.diverged = std::isnan(loss);
        run.validation.loss = loss;
        run.validation.tokens = 1;
        results.back().back().push_back(run);
      }
    }
  }
  return compare(sweep, results, {});
}

constexpr const char* kThreeArms = R"(
[[arm]]
name = "a"
[[arm]]
name = "b"
set = { "optim.group.0.beta1" = 0.8 }
[[arm]]
name = "c"
set = { "optim.group.0.beta1" = 0.7 }
)";

TEST(Compare, takes_differences_by_seed_between_best_points) {
  const test::SmallSweep files;
  const Sweep sweep = load_sweep(files.write("baseline = \"b\"\n", kThreeArms));
  const double nan = std::nan("");
  const Comparison c =
      compare_losses(sweep, {{{3, 3.2}, {2.0, 2.3}, {2.5, 2.5}}, {{4, 4}, {2.5, 2.6}, {nan, 1}}, {{nan, 4}, {nan, nan}, {3, nan}}});
  EXPECT_EQ(c.arms[0].best, 1u);
  EXPECT_EQ(c.arms[0].refused, "");
  EXPECT_DOUBLE_EQ(c.arms[0].points[1].mean, 2.15);
  EXPECT_EQ(c.arms[1].best, 1u) << "a point that diverged under one seed is no candidate, but lies beyond the best";
  EXPECT_EQ(c.arms[1].refused, "");
  EXPECT_FALSE(c.arms[2].best);
  EXPECT_THAT(c.arms[2].refused, HasSubstr("not finite"));
  ASSERT_EQ(c.differences.size(), 1u);
  EXPECT_NEAR(c.differences[0].by_seed[0], -0.5, 1e-12);
  EXPECT_NEAR(c.differences[0].by_seed[1], -0.3, 1e-12);
  EXPECT_NEAR(c.differences[0].t.high, -0.4 + 12.7062 * 0.1, 1e-4);  // t of 1 degree of freedom; error 0.1
  EXPECT_EQ(Json::parse(results_json(sweep, c))["arms"].size(), 3u);
  EXPECT_THAT(results_table(sweep, c), HasSubstr("diverged"));
}

TEST(Compare, has_a_winner_where_a_field_can_go_no_further) {
  const test::SmallSweep files;
  const auto refused = [&](const std::string& axis, std::vector<double> losses) {
    const char* arm = "[[arm]]\nname = \"a\"\nset = { \"optim.group.0.rule\" = \"adamw\" }\n";
    const Sweep sweep = load_sweep(files.write("grid = { " + axis + " }\n", arm, false));
    std::vector<std::vector<double>> points;
    for (const double loss : losses) points.push_back({loss, loss});
    return compare_losses(sweep, {points}).arms[0].refused;
  };
  const std::string decay = "\"optim.group.0.weight_decay\" = [0, 0.1, 0.2]", beta = "\"optim.group.0.beta1\" = [0.0, 0.5, 0.9]";
  EXPECT_EQ(refused(decay, {1, 2, 3}), "");
  EXPECT_THAT(refused(decay, {3, 2, 1}), HasSubstr("weight_decay = 0.2 is the highest"));
  EXPECT_EQ(refused(beta, {1, 2, 3}), "");
  EXPECT_THAT(refused(beta, {3, 2, 1}), HasSubstr("beta1 = 0.9 is the highest")) << "1 is no value of it, and 0.99 is one";
  EXPECT_THAT(refused("\"optim.group.0.weight_decay\" = [0.05, 0.1, 0.2]", {1, 2, 3}), HasSubstr("the lowest"));
}

TEST(CompareJson, says_the_counts_of_a_bucket_and_their_logarithm) {
  EXPECT_EQ(bucket_json(bucket_of(0)), (Json{{"bucket", "never seen"}, {"from", 0}, {"log2", nullptr}}));
  EXPECT_EQ(bucket_json(bucket_of(1)), (Json{{"bucket", "1"}, {"from", 1}, {"log2", 0}}));
  EXPECT_EQ(bucket_json(bucket_of(47)), (Json{{"bucket", "32-63"}, {"from", 32}, {"log2", 5}}));
}

TEST(Compare, counts_a_run_that_diverges_as_a_result) {
  const test::SmallSweep files;
  const Sweep sweep =
      load_sweep(files.write("grid = { \"optim.lr\" = [1e-3, 1e-2, 1e300] }\n",
                             "[[arm]]\nname = \"a\"\nset = { \"optim.rule\" = \"sgd\" }\n[[arm]]\nname = \"b\"\n", false));
  const CompareOutcome outcome = run_comparison(sweep, files.path("out"), ignore);
  const PointSummary& wild = outcome.comparison->arms[0].points[2];
  EXPECT_FALSE(wild.trained);
  EXPECT_THAT(wild.runs[0].why, HasSubstr("at step"));
  EXPECT_TRUE(run_is_done(files.path("out/runs/a/optim.lr=1e+300/seed-1")));
}

// load_sweep() refuses these by their configs; what starts is held to it all the same.
// The last update of a run may be the one that breaks it: no step's loss was wrong.
TEST(Compare, counts_a_run_whose_last_evaluation_is_not_finite_as_a_result) {
  const test::SmallSweep files;
  const std::string wild = kRealIsDouble ? "1e160" : "1e22";  // finite as a weight, not as a product of two
  const Sweep sweep = load_sweep(files.write(
      "set = { \"train.steps\" = 1 }\ngrid = { \"optim.lr\" = [1e-3, 1e-2, " + wild + "] }\n", "[[arm]]\nname = \"a\"\n", false));
  const CompareOutcome outcome = run_comparison(sweep, files.path("out"), ignore);
  ASSERT_TRUE(outcome.comparison);
  const ArmSummary& arm = outcome.comparison->arms.at(0);
  EXPECT_TRUE(arm.points.at(2).runs.at(0).diverged);
  EXPECT_THAT(arm.points.at(2).runs.at(0).why, HasSubstr("not finite"));
  EXPECT_FALSE(arm.points.at(0).runs.at(0).diverged);
  ASSERT_TRUE(arm.best);
  EXPECT_NE(*arm.best, 2u);
}

TEST(Compare, refuses_runs_that_start_from_other_weights_or_data) {
  const test::SmallSweep files;
  const auto message = [&](const std::string& key) -> std::string {
    Sweep sweep =
        load_sweep(files.write("[[arm]]\nname = \"a\"\n[[arm]]\nname = \"b\"\nset = { \"optim.group.0.beta1\" = 0.8 }\n"));
    sweep.arms[1].settings.push_back({key, "16"});
    try {
      run_comparison(sweep, files.path("out-" + key), ignore);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_THAT(message("model.d_model"), HasSubstr("different initial weights under seed 1"));
  EXPECT_THAT(message("train.grad_accum"), HasSubstr("different data under seed 1"));
}

TEST(Compare, does_not_mix_sweeps_and_shuts_a_second_one_out) {
  const test::SmallSweep files;
  const std::string arm = "[[arm]]\nname = \"a\"\n";
  const Sweep sweep = load_sweep(files.write(arm));
  {
    make_directories(files.path("out"));
    const RunLock other = RunLock::acquire(files.path("out"));
    EXPECT_THROW(run_comparison(sweep, files.path("out"), ignore), Error);
  }
  run_comparison(sweep, files.path("out"), ignore);
  const Sweep longer = load_sweep(files.write(arm), {"train.steps=31"});
  try {
    run_comparison(longer, files.path("out"), ignore);
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("train.steps was 30 and is 31"));
  }
  // More of the grid is more runs, and those that are done stay.
  const Sweep wider = load_sweep(files.write("grid = { \"optim.group.0.lr\" = [1e-3, 1e-2, 3.0, 10.0] }\n", arm, false));
  int64_t done_before = 0;
  run_comparison(wider, files.path("out"), [&](const CompareProgress& p) { done_before += p.outcome.done_before; });
  EXPECT_EQ(done_before, 6);
}

TEST(Compare, does_not_mix_runs_of_a_file_before_and_after_it_changed) {
  const test::SmallSweep files;
  const std::string text(400, 'a');
  const auto write = [&](const std::string& name, const std::string& content) { std::ofstream(files.path(name)) << content; };
  const Sweep sweep = load_sweep(files.write("[set]\n\"data.tokenizer\" = \"byte\"\n\"train.steps\" = 2\n\"data.train\" = \"" +
                                             files.path("train.txt") + "\"\n\"data.val\" = \"" + files.path("val.txt") +
                                             "\"\n[[arm]]\nname = \"a\"\n"));
  for (const std::string changed : {"train.txt", "val.txt"}) {
    write("train.txt", text);
    write("val.txt", text);
    const std::string out = files.path("out-" + changed);
    EXPECT_THROW(run_comparison(sweep, out, [](const CompareProgress&) { throw Interrupted{}; }), Interrupted);
    write(changed, text + "b");
    try {
      run_comparison(sweep, out, ignore);
      ADD_FAILURE() << changed;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kUsage);
      EXPECT_THAT(e.what(), AllOf(HasSubstr(files.path(changed)), HasSubstr("had another content")));
    }
    write(changed, text);
    EXPECT_TRUE(run_comparison(sweep, out, ignore).comparison);
  }
}

TEST(Compare, takes_data_of_its_own_for_every_seed_when_that_is_asked_for) {
  const test::SmallSweep files;
  const Sweep sweep =
      load_sweep(files.write("seed_keys = [\"train.seed\", \"data.zipf.seed\"]\naa_seeds = [8, 9]\n", "[[arm]]\nname = \"a\"\n"));
  EXPECT_TRUE(run_comparison(sweep, files.path("out"), ignore).comparison);
}

// The first step of Adam moves every element of a row by lr: |dw| / lr is sqrt(D) in every bucket.
TEST(Compare, measures_how_far_a_touch_moves_a_row) {
  const test::SmallSweep files;
  const Sweep sweep = load_sweep(
      files.write("[set]\n\"train.steps\" = 1\n\"train.log_every\" = 1\n\"train.eval_every\" = 0\n[[arm]]\nname = \"a\"\n"));
  const CompareOutcome outcome = run_comparison(sweep, files.path("out"), ignore);
  const RunResult& run = outcome.comparison->arms[0].points[1].runs[0];
  ASSERT_FALSE(run.touches.empty());
  for (const auto& [bucket, t] : run.touches) {
    EXPECT_GT(bucket, 0);
    EXPECT_NEAR(t.moved, std::sqrt(8.0), 0.02);
    EXPECT_EQ(t.touches, run.rows.at(bucket).rows) << "one step: every row that was read was touched once";
  }
}

TEST(AverageRun, weighs_buckets_by_what_is_in_them) {
  RunResult a, b;
  a.validation.by_input[1] = {1, 2.0, 0.5};
  b.validation.by_input[1] = {3, 4.0, 0.1};
  a.touches[2] = {1, 8};
  b.touches[2] = {3, 4};
  a.curve = {{10, 2}, {20, 1}};
  b.curve = {{10, 4}};
  const AverageRun mean = average({a, b});
  EXPECT_DOUBLE_EQ(mean.by_input.at(1).loss, 3.5);
  EXPECT_DOUBLE_EQ(mean.by_input.at(1).divergence, 0.2);
  EXPECT_DOUBLE_EQ(mean.touches.at(2).moved, 5);
  ASSERT_EQ(mean.curve.size(), 1u);
  EXPECT_DOUBLE_EQ(mean.curve[0].loss, 3);
}

}  // namespace
}  // namespace rowan
