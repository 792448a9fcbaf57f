// Runs of sessions, for tests that compare a run with one that was interrupted, or with another one.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "tests/support/small_run.h"

namespace rowan::test {

struct Trace {
  std::vector<double> losses;
  std::string digest;
  bool operator==(const Trace&) const = default;
};

inline void train_until(TrainSession& session, int64_t step, Trace& trace) {
  while (session.steps_done() < step) {
    const StepResult r = session.step();
    ASSERT_TRUE(r.updated()) << r.what;
    trace.losses.push_back(r.loss);
  }
}

inline Trace uninterrupted(const Config& config, int64_t steps) {
  Trace trace;
  TrainSession session(config);
  train_until(session, steps, trace);
  trace.digest = make_image(session).state_digest();
  return trace;
}

// The checkpoint of a session, through a file.
inline Checkpoint saved(const SmallRun& run, TrainSession& session, const std::string& name) {
  const std::string path = run.path(name + ".h5");
  publish_checkpoint(make_image(session), path, IfExists::kReplace);
  return Checkpoint::open(path);
}

// Trained to `stop` under a config that `config` makes, saved, and trained on to `steps` from the file.
template <class MakeConfig>
Trace interrupted(const SmallRun& run, const MakeConfig& config, int64_t stop, int64_t steps) {
  Trace trace;
  auto first = std::make_unique<TrainSession>(config());
  train_until(*first, stop, trace);
  Checkpoint checkpoint = saved(run, *first, "stopped-" + std::to_string(stop));
  first.reset();  // what goes on has the file alone
  TrainSession session(checkpoint_config(checkpoint), checkpoint_tokenizer(checkpoint));
  session.load(checkpoint);
  EXPECT_EQ(session.steps_done(), stop);
  train_until(session, steps, trace);
  trace.digest = make_image(session).state_digest();
  return trace;
}

// Checksums of all arrays of a state by path, /config and what describes the machine aside.
inline std::map<std::string, std::string> arrays_of(const Checkpoint& checkpoint, const std::string& under) {
  std::map<std::string, std::string> out;
  for (const ArrayInfo& a : checkpoint.arrays())
    if (a.path.starts_with(under)) out[a.path] = a.shape_text() + " " + a.checksum;
  return out;
}

// What a session under a small config with these settings says when it is refused, with its hint; "" when it is not.
inline std::string refusal(const std::vector<std::string>& sets) {
  try {
    const SmallRun run;
    TrainSession session(run.config(sets));
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kUsage);
    return std::string(e.what()) + " | " + e.hint();
  }
  return "";
}

}  // namespace rowan::test
