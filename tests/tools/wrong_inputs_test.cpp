// Everything that a user can get wrong, each with the exit code and the message that it must have: 2 for the command line and the
// config, 1 for files and what is in them. Standard output stays empty and nothing is left behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "tests/support/command_run.h"

namespace rowan::test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

struct WrongInput {
  std::vector<std::string> arguments;
  int exit_code;
  std::string message;
};

class WrongInputs : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    run_ = std::make_unique<CommandRun>();
    ASSERT_EQ(run_->train("good", {"train.steps=2"}).exit_code, 0);
  }
  static void TearDownTestSuite() { run_.reset(); }

  static std::string path(const std::string& name) { return run_->path(name); }
  static WrongInput train(const std::string& set, int exit_code, const std::string& message) {
    return {run_->train_arguments("new", {set}), exit_code, message};
  }
  static WrongInput config(const std::string& text, const std::string& message) {
    static int number = 0;
    return {{"train", run_->write("wrong" + std::to_string(number++) + ".toml", text), "--out", path("new")}, 2, message};
  }
  static std::string checkpoint() { return path("good/checkpoints/step-0000000002.h5"); }

  static void check(const std::vector<WrongInput>& table) {
    for (const WrongInput& wrong : table) {
      const CommandResult r = CommandRun::rowan(wrong.arguments);
      const std::string shown = ::testing::PrintToString(wrong.arguments);
      EXPECT_EQ(r.exit_code, wrong.exit_code) << shown << r.err;
      EXPECT_THAT(r.err, StartsWith("rowan: error: [")) << shown;
      EXPECT_THAT(r.err, HasSubstr(wrong.message)) << shown;
      EXPECT_EQ(r.out, "") << shown;
      EXPECT_LE(std::count(r.err.begin(), r.err.end(), '\n'), 2) << r.err;
      EXPECT_FALSE(run_->exists("new")) << shown;
      std::filesystem::remove_all(path("new"));  // one row that fails is enough
    }
  }

  static std::unique_ptr<CommandRun> run_;
};
std::unique_ptr<CommandRun> WrongInputs::run_;

TEST_F(WrongInputs, in_config_files) {
  check({
      config("[model]\nn_embed = 3\n", "wrong0.toml:2:1: [model] has no key \"n_embed\""),
      config("[modle]\n", "\"modle\""),
      config("[model]\nn_head = \"four\"\n", "model.n_head must be an integer from 1"),
      config("[model]\nn_head = 2.5\n", "got the number 2.5"),
      config("[model]\nn_head = 4\nnum_heads = 4\n", "num_heads"),
      config("[model]\nn_embd = 4\nd_model = 4\n", "d_model"),
      config("[optim]\nrule = \"adamax\"\n", "one of \"ada"),
      config("[optim]\nmomentum = 0.9\n", "momentum"),
      config("[train]\nsteps = nan\n", "train.steps"),
      config("[optim]\nlr = inf\n", "optim.lr"),
      config("model = 3\n", "expected [model]"),
      config("[model\n", ":1:"),
      config("\xFF\xFE", "invalid utf-8"),
      config("[[optim.group]]\nrule = \"sgd\"\n", "params is missing"),
      {{"train", path("none.toml"), "--out", path("new")}, 2, "No such file"},
      {{"train", path("good"), "--out", path("new")}, 2, "is a directory"},
  });
}

TEST_F(WrongInputs, in_values) {
  check({
      train("train.steps=-1", 2, "train.steps must be an integer of at least 0, got the integer -1"),
      train("model.n_head=0", 2, "model.n_head must be an integer from 1"),
      train("model.n_head=3", 2, "n_head = 3 does not divide d_model = 16"),
      train("model.n_kv_head=3", 2, "n_kv_head"),
      train("model.d_model=0", 2, "model.d_model"),
      train("model.n_layer=-1", 2, "model.n_layer"),
      train("model.dropout=1", 2, "model.dropout"),
      train("model.vocab_size=3", 2, "vocab_size is 3, but the tokenizer has"),
      train("model.positions=sinus", 2, "one of \"learned\""),
      train("data.batch_size=0", 2, "data.batch_size"),
      train("data.seq_len=13", 2, "data.seq_len = 13 is longer than model.max_seq_len = 12"),
      train("data.val_fraction=1", 2, "data.val_fraction"),
      train("train.grad_accum=0", 2, "train.grad_accum"),
      train("train.threads=-2", 2, "train.threads"),
      train("optim.lr=-1", 2, "lr"),
      train("optim.beta1=1", 2, "beta1"),
      train("train.schedule.min_ratio=2", 2, "min_ratio"),
      train("train.stepz=3", 2, "there is no key \"train.stepz\""),
      train("train.steps", 2, "expected key=value"),
      train("optim.group.0.params=nothing.*", 2, "nothing.*"),
      train("name=a/b", 2, "name must be usable as a directory's name"),
  });
}

TEST_F(WrongInputs, in_data) {
  const std::string text = small_text();
  check({
      train("data.train=", 2, "data.train is not set: expected the path of a text or token file"),
      train("data.train=" + run_->write("empty.txt", ""), 1, "empty.txt' is empty"),
      train("data.train=" + run_->write("short.txt", "abcdefgh"), 1, "has 7 tokens; seq_len = 12 needs at least 13"),
      train("data.train=" + run_->write("latin1.txt", text + "\xE9 \xE0" + text), 1, "not valid UTF-8: "),
      train("data.train=" + path("good"), 1, "is a directory; a file was expected"),
      train("data.train=" + path("none.txt"), 1, "No such file or directory"),
      train("data.train=/dev/zero", 1, "/dev/zero"),
      train("data.train=builtin:nothing", 2, "builtin:nothing"),
      train("data.val=" + run_->write("other.txt", text + "Ω" + text), 1, "'Ω' (U+03A9) at byte offset"),
      train("data.val=" + path("empty.txt"), 1, "data.val"),
      train("data.train=" + path("text.txt") + "," + path("none.txt"), 1, "none.txt"),
      train("data.tokenizer=bpe", 2, "\"char\", \"byte\" or the path of a saved tokenizer"),
      train("data.tokenizer=" + path("text.txt"), 1, "is not a saved tokenizer"),
      {{"eval", path("good"), "--data", run_->write("foreign.txt", "Ω")}, 1, "'Ω' (U+03A9)"},
      {{"eval", path("good"), "--data", path("empty.txt")}, 1, "0 tokens"},
  });
}

TEST_F(WrongInputs, in_places_to_write) {
  const auto out = [](const std::string& place, int code, const std::string& message) {
    return WrongInput{{"train", run_->config(), "--out", place}, code, message};
  };
  std::filesystem::create_directory(path("full of other things"));
  run_->write("full of other things/letter.doc", "dear");
  check({
      out("/proc/nothing", 1, "cannot make directory '/proc/nothing'"),
      out(path("text.txt"), 1, "cannot make directory"),
      out(path("text.txt") + "/run", 1, "cannot make directory"),
      out(path("good"), 2, "holds a run already"),
      out(path("full of other things"), 2, "is not empty and not a run: it has 'letter.doc'"),
  });
  EXPECT_THAT(run_->names_in("full of other things"), ::testing::ElementsAre("letter.doc"));
}

TEST_F(WrongInputs, in_checkpoints) {
  const std::string good = read_all(checkpoint());
  std::string damaged = good;
  damaged[good.size() / 2] = static_cast<char>(damaged[good.size() / 2] ^ 1);
  const std::string foreign = "\x89HDF\r\n\x1a\n" + std::string(2000, '\0');
  check({
      {{"eval", path("nowhere")}, 1, "No such file"},
      {{"sample", path("nowhere")}, 1, "No such file"},
      {{"inspect", path("nowhere")}, 1, "No such file"},
      {{"resume", path("nowhere")}, 1, "there is no run in"},
      {{"resume", path("text.txt")}, 1, "there is no run in"},
      {{"inspect", path("")}, 1, "is not the directory of a run"},
      {{"eval", path("text.txt")}, 1, "is not a Rowan checkpoint"},
      {{"eval", run_->write("nothing.h5", "")}, 1, "nothing.h5"},
      {{"eval", run_->write("foreign.h5", foreign)}, 1, "foreign.h5"},
      {{"eval", run_->write("cut.h5", good.substr(0, good.size() - 100))}, 1, "cut.h5"},
      {{"sample", run_->write("cut.h5", good.substr(0, 300))}, 1, "cut.h5"},
      {{"eval", run_->write("grown.h5", good + "x")}, 1, "grown.h5"},
      {{"inspect", run_->write("damaged.h5", damaged)}, 1, "damaged"},
      {{"sample", path("good/best.h5"), "--prompt", "Ω"}, 2, "character 'Ω' (U+03A9) at byte offset 0"},
      {{"inspect", path("good"), "--walk", "a", "--json"}, 2, "--"},
  });
}

TEST_F(WrongInputs, in_changes_of_a_saved_run) {
  const auto resume = [](const std::string& set, int code, const std::string& message) {
    return WrongInput{{"resume", path("good"), "--set", set}, code, message};
  };
  const std::string before = run_->digest("good");
  check({
      resume("model.d_model=32", 2, "model.d_model from 16 to 32"),
      resume("optim.lr=1", 2, "optim.lr from 0.01 to 1"),
      resume("optim.rule=sgd", 2, "optim.rule from \"adamw\" to \"sgd\""),
      resume("train.steps=1", 2, "the run is at step 2; expected train.steps of at least that, got 1"),
      resume("train.stepz=1", 2, "did you mean train.steps?"),
      resume("data.train=" + run_->write("other.txt", small_text() + "the end"), 1, "fingerprint"),
  });
  EXPECT_EQ(run_->digest("good"), before);
}

}  // namespace
}  // namespace rowan::test
