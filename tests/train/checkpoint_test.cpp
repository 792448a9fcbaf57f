// Checkpoints: what is written is what is read; equal states are equal bytes; strict loading lists everything at once.
#include "train/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/temp_dir.h"
#include "train/checkpoint_state.h"

namespace rowan {
namespace {

using testing::AllOf;
using testing::HasSubstr;

struct SmallState {
  Tensor weight = Tensor::from({2, 3}, std::vector<Real>{1, -2, 3, Real(0.25), 5, -6});
  Tensor empty = Tensor::zeros({0, 4});
  int64_t step = 7;
  double best = 1.5;
  std::vector<int32_t> seen = {1, -1};
  std::vector<int64_t> steps = {3, int64_t{1} << 40};
  std::vector<double> history = {};
  std::vector<uint8_t> blob = {0, 255, 10};

  void write(CheckpointWriter& w) const {
    w.add_text("/config", "[model]\nname = \"Größe\"\n");
    w.add("/model/blocks.0.attn.qkv.weight", weight);
    w.add("/model/empty", empty);
    w.add("/optim/blocks.0.attn.qkv.weight/m", weight);
    w.add("/train/step", step);
    w.add("/train/best_loss", best);
    w.add("/rng/seen", seen);
    w.add("/loader/steps", steps);
    w.add("/train/history", history);
    w.add("/tokenizer/data", blob);
    w.add_text("/train/note", "");
  }
  CheckpointImage image(const std::string& created = "2025-01-31T00:00:00Z") const {
    CheckpointWriter w;
    write(w);
    return w.build({.created = created, .rowan_version = "1.2.3", .complete = true});
  }
};

TEST(Checkpoint, everything_comes_back_as_it_was) {
  const test::TempDir dir;
  const std::string path = dir.file("a b ü.h5");
  const SmallState s;
  const CheckpointImage image = s.image();
  publish_checkpoint(image, path, IfExists::kRefuse);

  Checkpoint c = Checkpoint::open(path);
  EXPECT_EQ(c.info().created, "2025-01-31T00:00:00Z");
  EXPECT_EQ(c.info().rowan_version, "1.2.3");
  EXPECT_TRUE(c.info().complete);
  EXPECT_EQ(c.state_digest(), image.state_digest());
  EXPECT_EQ(c.integer("/train/step"), 7);
  std::string config, note = "x";
  c.take_text("/config", config);
  c.take_text("/train/note", note);
  EXPECT_EQ(config, "[model]\nname = \"Größe\"\n");
  EXPECT_EQ(note, "");
  Tensor shaped = Tensor::zeros({2, 3}), any, empty;
  c.take_shaped("/model/blocks.0.attn.qkv.weight", shaped);
  c.take("/optim/blocks.0.attn.qkv.weight/m", any);
  c.take("/model/empty", empty);
  EXPECT_TRUE(std::equal(shaped.values().begin(), shaped.values().end(), s.weight.values().begin()));
  EXPECT_TRUE(std::equal(any.values().begin(), any.values().end(), s.weight.values().begin()));
  EXPECT_EQ(empty.shape(), (Shape{0, 4}));
  SmallState t;
  t.step = 0, t.best = 0, t.seen = {}, t.steps = {}, t.history = {1}, t.blob = {};
  c.take("/train/step", t.step);
  c.take("/train/best_loss", t.best);
  c.take("/rng/seen", t.seen);
  c.take("/loader/steps", t.steps);
  c.take("/train/history", t.history);
  c.take("/tokenizer/data", t.blob);
  EXPECT_NO_THROW(c.finish());
  EXPECT_EQ(t.step, s.step);
  EXPECT_EQ(t.best, s.best);
  EXPECT_EQ(t.seen, s.seen);
  EXPECT_EQ(t.steps, s.steps);
  EXPECT_EQ(t.history, s.history);
  EXPECT_EQ(t.blob, s.blob);
}

TEST(Checkpoint, equal_states_are_equal_bytes) {
  const SmallState s;
  const CheckpointImage a = s.image(), b = s.image();
  ASSERT_EQ(a.bytes().size(), b.bytes().size());
  EXPECT_EQ(std::memcmp(a.bytes().data(), b.bytes().data(), a.bytes().size()), 0);
}

}  // namespace
}  // namespace rowan
