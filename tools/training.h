// What `rowan train` and `rowan resume` share: threads, the summary at start, the loop, and how a run ends.
#pragma once

#include <string>
#include <vector>

#include "train/config.h"
#include "train/run_dir.h"
#include "train/session.h"

namespace rowan::tools {

// The number of threads for train.threads: 0 is the physical cores this process may use. Says so on stderr when only one works.
int thread_count(int64_t configured);

// For CKPT|DIR arguments. Newer checkpoints that are damaged are named on stderr; with strict they are an error.
Checkpoint open_checkpoint(const std::string& path, bool strict = false);

// Trains and reports. Throws ExitStatus 130 or 143 when a signal ended the run.
void run_training(TrainSession& session, RunDir& run);

// Goes on with the newest checkpoint of a run that verifies. `wanted` is null for the run's own config. strict: a damaged newest
// checkpoint is an error instead of a warning.
void resume_run(const std::string& directory, const std::vector<std::string>& overrides, const Config* wanted, bool strict);

}  // namespace rowan::tools
