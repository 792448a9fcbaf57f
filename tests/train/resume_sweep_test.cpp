// Exact resume at every step of a run, for every combination of position embedding, optimizer rule, accumulation, dropout, way of
// saving and number of threads.
//
// ROWAN_RESUME_STRIDE=1 covers every combination (minutes, tools/nightly.sh); by default every 41st, so that each value of each
// axis is met.
#include <gtest/gtest.h>

#include <cstdlib>
#include <tuple>

#include "core/parallel.h"
#include "tests/support/small_run.h"
#include "train/checkpoint_saver.h"
#include "train/run_dir.h"

namespace rowan {
namespace {

constexpr int64_t kSteps = 6;

struct Combination {
  std::string positions, rule;
  int accumulation;
  double dropout;
  bool background;
  int threads;

  std::string text() const {
    return join_text(positions, " ", rule, " accumulate ", accumulation, " dropout ", dropout, background ? " background" : "", " ",
                     threads, threads == 1 ? " thread" : " threads");
  }
};

// Every registered rule, on the row-sparse tables (muon, which takes none, on matrices), and the ways in which rows may lag behind.
// "rule axis=value ..."
std::vector<std::string> all_rules() {
  std::vector<std::string> rules = optimizer_rules();
  for (const char* more : {"adamw untouched=exact", "sgd untouched=exact", "adamw untouched=exact catch_up=closed",
                           "adamw untouched=frozen decay=deferred"})
    rules.push_back(more);
  return rules;
}

std::vector<Combination> all_combinations() {
  std::vector<Combination> all;
  for (const std::string& rule : all_rules())
    for (const char* positions : {"learned", "rope", "none"})
      for (const int accumulation : {1, 3})
        for (const double dropout : {0.0, 0.1})
          for (const bool background : {false, true})
            for (const int threads : {1, 2}) all.push_back({positions, rule, accumulation, dropout, background, threads});
  return all;
}

// A config holds its optimizers, which hold their state: one for each session.
// Bytes as tokens and short rows: most rows of the tables are read in some steps and not in others.
Config config_of(const test::SmallRun& run, const Combination& c) {
  std::vector<std::string> sets = {"model.positions=" + c.positions,
                                   "train.grad_accum=" + std::to_string(c.accumulation),
                                   "model.dropout=" + std::to_string(c.dropout),
                                   "data.tokenizer=byte",
                                   "data.seq_len=5",
                                   "data.batch_size=2",
                                   std::string("optim.group.0.params=") + (c.rule == "muon" ? "*.qkv.weight" : "embed.*")};
  std::istringstream words(c.rule);
  std::string word;
  words >> word;
  sets.push_back("optim.group.0.rule=" + word);
  sets.push_back("optim.group.0.lr=1e-2");
  while (words >> word) sets.push_back("optim.group.0." + word);
  if (c.rule.find("deferred") != std::string::npos) sets.push_back("optim.group.0.weight_decay=0.1");
  return run.config(sets);
}

struct Trace {
  std::vector<double> losses;  // of steps 1..
  std::string digest;
};

void train(TrainSession& session, int64_t until, Trace& trace) {
  while (session.steps_done() < until) {
    const StepResult r = session.step();
    ASSERT_TRUE(r.updated()) << r.what;
    trace.losses.push_back(r.loss);
  }
}

Trace undisturbed(const Config& config) {
  Trace trace;
  TrainSession session(config);
  train(session, kSteps, trace);
  trace.digest = make_image(session).state_digest();
  return trace;
}

// Saves before the first step and after each.
Trace saving_every_step(const Config& config, RunDir& dir, bool background) {
  Trace trace;
  TrainSession session(config);
  CheckpointSaver saver(dir, background);
  for (int64_t k = 0; k <= kSteps; ++k) {
    train(session, k, trace);
    saver.collect(true);
    saver.start(make_image(session), false, kSteps + 1, -1);
  }
  saver.collect(true);
  trace.digest = make_image(session).state_digest();
  return trace;
}

// How many resumes of this combination were compared.
int check(const test::SmallRun& run, const Combination& c) {
  const Trace whole = undisturbed(config_of(run, c));
  const Threads threads(c.threads);
  RunDir dir = RunDir::create(run.path("run"), true);
  const Trace saving = saving_every_step(config_of(run, c), dir, c.background);
  EXPECT_EQ(saving.losses, whole.losses) << c.text() << ": saving changes the run";
  EXPECT_EQ(saving.digest, whole.digest) << c.text() << ": saving changes the run";
  for (int64_t k = 0; k <= kSteps; ++k) {
    Checkpoint checkpoint = Checkpoint::open(dir.checkpoint_path(k));
    TrainSession session(checkpoint_config(checkpoint), checkpoint_tokenizer(checkpoint));
    session.load(checkpoint);
    Trace rest{.losses = {whole.losses.begin(), whole.losses.begin() + k}, .digest = {}};
    train(session, kSteps, rest);
    EXPECT_EQ(rest.losses, whole.losses) << c.text() << ", stopped after step " << k;
    EXPECT_EQ(make_image(session).state_digest(), whole.digest) << c.text() << ", stopped after step " << k;
  }
  return kSteps + 1;
}

TEST(ResumeSweep, continues_to_the_same_bits_from_every_step_in_every_combination) {
  const char* text = std::getenv("ROWAN_RESUME_STRIDE");
  const size_t stride = text == nullptr ? 41 : static_cast<size_t>(std::max(1L, std::strtol(text, nullptr, 10)));
  const std::vector<Combination> all = all_combinations();
  const test::SmallRun run;
  int combinations = 0, resumes = 0;
  for (size_t i = 0; i < all.size(); i += stride, ++combinations) resumes += check(run, all[i]);
  std::printf("%d of %zu combinations, %d resumes\n", combinations, all.size(), resumes);
}

}  // namespace
}  // namespace rowan
