// train.precision = "bf16": near the float32 run, and as exact as it in every other way.
#include "train/precision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "core/kernels/gemm_bf16.h"
#include "core/parallel.h"
#include "tests/support/run_command.h"
#include "tests/support/small_run.h"

namespace rowan {
namespace {

using ::testing::HasSubstr;

class Precision : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!bf16_available()) GTEST_SKIP() << "this processor or build has no bfloat16 products";
  }
  // Wide enough for products that are worth rounding.
  Config config(const std::string& precision) const {
    return run_.config({"train.precision=" + precision, "model.d_model=128", "data.batch_size=16", "optim.lr=1e-3"});
  }
  static std::string train(TrainSession& session, int64_t until, std::vector<double>& losses) {
    while (session.steps_done() < until) losses.push_back(session.step().loss);
    return make_image(session).state_digest();
  }

  test::SmallRun run_;
};

TEST_F(Precision, bf16_trains_beside_float32) {
  std::vector<double> single, half;
  TrainSession a(config("float32")), b(config("bf16"));
  train(a, 12, single);
  train(b, 12, half);
  ASSERT_LT(single.back(), single.front() - 0.5);
  for (size_t i = 0; i < single.size(); ++i) {
    EXPECT_NE(single[i], half[i]) << "step " << i + 1;
    EXPECT_NEAR(single[i], half[i], 0.02) << "step " << i + 1;
  }
}

TEST_F(Precision, bf16_gives_the_same_bits_for_any_number_of_threads_and_after_a_resume) {
  std::vector<double> losses, again;
  TrainSession whole(config("bf16"));
  const std::string digest = train(whole, 6, losses);
  for (const int count : {2, 4}) {
    const Threads threads(count);
    TrainSession first(config("bf16"));
    again.clear();
    train(first, 3, again);
    const std::string path = run_.path("three.h5");
    publish_checkpoint(make_image(first), path, IfExists::kReplace);
    Checkpoint checkpoint = Checkpoint::open(path);
    TrainSession second(checkpoint_config(checkpoint), checkpoint_tokenizer(checkpoint));
    second.load(checkpoint);
    EXPECT_EQ(train(second, 6, again), digest) << count << " threads";
    EXPECT_EQ(again, losses);
  }
}

// Everywhere: the command is told to use older instructions.
TEST(PrecisionOf, a_machine_without_bf16_refuses_it_and_names_the_way_out) {
  const test::SmallRun run;
  const test::CommandResult result =
      test::run_command({"/usr/bin/env", "DNNL_MAX_CPU_ISA=AVX2", ROWAN_BINARY, "train", ROWAN_SOURCE_DIR "/configs/smoke.toml",
                         "--set", "data.train=" + run.text_path(), "--set", "train.precision=bf16", "--out", run.path("run")});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("rowan: error: [config] train.precision = \"bf16\" needs a processor"));
  EXPECT_THAT(result.err, HasSubstr("hint: set train.precision = \"float32\""));
}

}  // namespace
}  // namespace rowan
