// Capsule: what is needed to look at a step that went wrong: which one, on which samples, with which norms. A small JSON file in
// the run directory, capsules/step-<10 digits>.json. `rowan replay` runs the step again and compares.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/session.h"

namespace rowan {

struct Capsule {
  int64_t steps_done = 0;  // before the step
  int64_t position = 0;    // of the loader, before the step
  std::string what;        // "the loss is nan"
  std::string action;      // what the run did: "stop", "skip", "rewind"
  std::string config;      // of the run, resolved, as TOML; "" in capsules of older versions
  std::string loss;        // shortest text that reads back to the same bits; "nan", "inf", "-inf"
  std::vector<int64_t> samples;
  struct Norms {
    std::string name, weight, gradient;  // as texts
    bool operator==(const Norms&) const = default;
  };
  std::vector<Norms> norms;

  int64_t failed_step() const { return steps_done + 1; }
};

Capsule make_capsule(const StepResult& result, int64_t steps_done, const std::string& action, const std::string& config);
std::string capsule_json(const Capsule& capsule);
// Trusts nothing: Error (kData) for what is no capsule.
Capsule read_capsule(const std::string& path);

// Publishes it and returns its path. A capsule that is there with the same content is left; one of another event at the same step
// is kept, and the new one gets a number: step-0000000012-2.json.
std::string write_capsule(const Capsule& capsule, const std::string& run_directory);

// What a run does after a step without update: "stop", "skip" or "rewind".
std::string answer_to(const Config& config, const StepResult& result);
// Where a rewind goes: the last multiple of checkpoint.every that is done, a function of the step alone. Saves that a clock or a
// signal asked for play no part, so a resumed run goes back to where one that never stopped does. 0: nowhere.
int64_t rewind_step(const Config& config, int64_t steps_done);

struct Replay {
  std::string start;                     // the checkpoint it began with, or "the initial weights"
  Capsule again;                         // what came of the step this time
  std::vector<std::string> differences;  // empty: the same bits
};
// Goes on from the newest checkpoint before the step, or from the initial weights, on the way that the run took. The run directory
// is only read.
Replay replay_capsule(const std::string& path, const Capsule& capsule);

}  // namespace rowan
