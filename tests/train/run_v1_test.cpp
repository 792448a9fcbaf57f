// A run's checkpoint of format version 1, kept for ever: every later version reads it, goes on from it, and evaluates it.
//
// It is what `rowan train` made of the config inside it: built-in data, learned positions, rows that lag behind, a window of
// losses.
#include <gtest/gtest.h>

#include "tests/support/changed_checkpoint.h"
#include "tests/support/temp_dir.h"
#include "train/evaluate.h"
#include "train/session.h"

namespace rowan {
namespace {

const std::string kPath = std::string(ROWAN_FIXTURES) + "/run_v1.h5";

class RunVersion1 : public testing::Test {
 protected:
  void SetUp() override {
    if (kRealIsDouble) GTEST_SKIP() << "the file holds float32";
  }
};

TEST_F(RunVersion1, opens_with_the_digest_that_it_was_saved_with) {
  const Checkpoint checkpoint = Checkpoint::open(kPath);
  EXPECT_EQ(checkpoint.state_digest(), "07de94e2143170429bc4232f3da9c077");
  EXPECT_EQ(checkpoint.integer("/train/step"), 6);
}

TEST_F(RunVersion1, loads_and_saves_to_the_same_state) {
  Checkpoint checkpoint = Checkpoint::open(kPath);
  TrainSession session(checkpoint_config(checkpoint), checkpoint_tokenizer(checkpoint));
  session.load(checkpoint);
  EXPECT_EQ(make_image(session).state_digest(), checkpoint.state_digest());
  EXPECT_FALSE(checkpoint.contains("/train/denormals"));
  EXPECT_EQ(session.saved_denormals(), "flushed to zero") << "what the first version did without saying so";
}

// The last bits depend on the processor, so the losses are compared with what the first version measured.
TEST_F(RunVersion1, goes_on_as_it_did_then) {
  Checkpoint checkpoint = Checkpoint::open(kPath);
  TrainSession session(checkpoint_config(checkpoint), checkpoint_tokenizer(checkpoint));
  session.load(checkpoint);
  for (const double loss : {0.826768, 0.802412, 0.783687}) {
    const StepResult r = session.step();
    ASSERT_TRUE(r.updated()) << r.what;
    EXPECT_NEAR(r.loss, loss, 1e-4);
  }
  EXPECT_EQ(session.find_non_finite(), "");
}

TEST_F(RunVersion1, evaluates_to_the_loss_of_then) {
  Checkpoint checkpoint = Checkpoint::open(kPath);
  const LoadedModel loaded = load_model(checkpoint);
  EXPECT_EQ(loaded.step, 6);
  const Corpus corpus = open_corpus(loaded.config.data, loaded.tokenizer);
  EXPECT_NEAR(evaluate(*loaded.model, corpus.val, *loaded.tokenizer, loaded.config.data.batch_size).loss, 0.834223, 1e-4);
}

// A config inside a signed file may claim any model: no memory is taken for one that the file can't hold.
TEST_F(RunVersion1, a_config_that_claims_more_than_the_file_holds_is_refused) {
  const test::TempDir dir;
  const Checkpoint checkpoint = Checkpoint::open(kPath);
  std::string config = checkpoint.text("/config");
  const size_t at = config.find("n_layer = 1");
  ASSERT_NE(at, std::string::npos);
  test::publish_changed(checkpoint, "/config", config.replace(at, 11, "n_layer = 4096"), dir.file("c.h5"));
  Checkpoint claims = Checkpoint::open(dir.file("c.h5"));
  try {
    load_model(claims);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kData);
    EXPECT_NE(std::string(e.what()).find("describes a model whose parameters"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace rowan
