// A checkpoint of format version 1, written once and kept for ever, loads to the same values in every later version.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/train/small_checkpoint.h"
#include "train/checkpoint.h"

namespace rowan {
namespace {

std::vector<float> floats(const Checkpoint& c, const std::string& path) {
  const ArrayInfo& info = *c.find(path);
  EXPECT_EQ(info.dtype, DType::kFloat32);
  std::vector<float> values(static_cast<size_t>(info.bytes) / sizeof(float));
  c.read(info, values.data());
  return values;
}

TEST(CheckpointVersion1, kept_file_loads_to_the_values_it_was_made_of) {
  Checkpoint c = Checkpoint::open(std::string(ROWAN_FIXTURES) + "/checkpoint_v1.h5");
  EXPECT_EQ(c.info().created, "2025-01-31T00:00:00Z");
  EXPECT_EQ(c.info().rowan_version, "1.2.3");
  EXPECT_TRUE(c.info().complete);
  EXPECT_EQ(c.state_digest(), "421f28aeaa0c3d195584bbcddff25a0a");
  EXPECT_EQ(c.arrays().size(), 11u);
  const std::vector<float> weight = {1, -2, 3, 0.25f, 5, -6};
  EXPECT_EQ(floats(c, "/model/blocks.0.attn.qkv.weight"), weight);
  EXPECT_EQ(floats(c, "/optim/blocks.0.attn.qkv.weight/m"), weight);
  EXPECT_EQ(c.find("/model/empty")->dims, (std::vector<int64_t>{0, 4}));
  EXPECT_EQ(c.find("/model/blocks.0.attn.qkv.weight")->dims, (std::vector<int64_t>{2, 3}));
  std::vector<int32_t> seen;
  std::vector<int64_t> steps;
  std::vector<double> history = {1};
  c.take("/rng/seen", seen);
  c.take("/loader/steps", steps);
  c.take("/train/history", history);
  EXPECT_EQ(seen, (std::vector<int32_t>{1, -1}));
  EXPECT_EQ(steps, (std::vector<int64_t>{3, int64_t{1} << 40}));
  EXPECT_TRUE(history.empty());
  EXPECT_EQ(c.integer("/train/step"), 7);
  EXPECT_EQ(c.number("/train/best_loss"), 1.5);
  EXPECT_EQ(c.text("/train/note"), "");
  EXPECT_EQ(c.text("/config"), "[model]\nd_model = 8 # Größe\n");
  EXPECT_EQ(c.blob("/tokenizer/data"), (std::vector<uint8_t>{0, 255, 10}));
}

TEST(CheckpointVersion1, writer_still_makes_the_same_state_digest) {
  if (kRealIsDouble) GTEST_SKIP() << "the file holds float32";
  EXPECT_EQ(test::SmallState().image().state_digest(), "421f28aeaa0c3d195584bbcddff25a0a");
}

}  // namespace
}  // namespace rowan
