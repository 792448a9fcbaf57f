// StepSample: how long a training step of a model takes on this machine, from parts of it that really run: one block, forward and
// backward, and the head on a part of the vocabulary. Both are scaled to the whole model by their FLOPs; what only moves memory
// (clipping, the update) is counted in bytes at the measured copy rate.
//
// The parts are cut to a bounded size: a sample takes about a second and some hundred megabytes at most, whatever the model is.
#pragma once

#include <cstdint>

#include "train/config.h"

namespace rowan {

struct StepSample {
  double block_seconds = 0;   // all blocks of one micro-batch, forward and backward
  double head_seconds = 0;    // head and loss of one micro-batch
  double update_seconds = 0;  // norm, clipping and update, once a step
  double copy_rate = 0;       // bytes a second
  double step_seconds = 0;    // all of it, with train.grad_accum micro-batches and train.recompute
};

// config.model must be resolved.
StepSample sample_step(const Config& config);

// What clipping and the update read and write in a step, in bytes.
double update_bytes(const Config& config);
// What the update computes in matrix products: muon.
double update_flops(const Config& config);

}  // namespace rowan
