// MemoryPlan: the memory that training takes, found by walking through one step and counting every buffer that the ops take from
// the pool and give back (core/tensor.h), in their order. Nothing is allocated.
//
// Counted: weights, optimizer state, gradients, values kept for backward, and what backward holds for a moment. Not counted: the
// program and its libraries, token data in memory, batches, and buffers of one tile.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "optim/optimizer.h"
#include "train/config.h"

namespace rowan {

struct MemoryPlan {
  int64_t weights = 0;
  int64_t optimizer_state = 0;
  int64_t gradients = 0;    // of all parameters; of a row-sparse table at most one row a token
  int64_t activations = 0;  // kept from forward for backward, with all of the forward pass done
  int64_t training = 0;     // the most in use at one time
  int64_t pool = 0;         // what the pool has from the system after a step: some more than `training`, as buffers of one size
                            // can't serve as another
  int64_t flushed = 0;      // rows of tables that lag behind, kept while evaluation and saving see them brought up to date
  int64_t checkpoint = 0;   // the image in memory while a checkpoint is saved
  int64_t copied = 0;       // state that is copied to make the image
  int64_t packed = 0;       // copies in bfloat16 of what products multiply, with train.precision = "bf16"
};

// config.model must be resolved.
MemoryPlan plan_memory(const Config& config);

// The rule that updates a parameter: the first group whose glob matches, else [optim].
const Optimizer& optimizer_for(const Config& config, const std::string& parameter);

}  // namespace rowan
