// What a run directory says about itself beside its checkpoints.
#pragma once

#include "train/run_dir.h"
#include "train/session.h"

namespace rowan {

// config.toml and tokenizer.json, in place of what stood there.
void write_description(TrainSession& session, const RunDir& run);

}  // namespace rowan
