// Plan: what a run will take before it is started: parameters, memory, speed, time, size of a checkpoint.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/config.h"
#include "train/memory_plan.h"
#include "train/step_sample.h"

namespace rowan {

struct PlanGroup {
  std::string name;  // "embed.tokens", "attention", "mlp", ...
  int64_t parameters = 0;
};

struct Plan {
  Config config;  // with the model resolved
  std::vector<PlanGroup> groups;
  int64_t parameters = 0;
  MemoryPlan memory;
  int64_t process_bytes = 0;     // the program and its libraries, measured
  int64_t checkpoint_bytes = 0;  // of one file
  double flops_per_token = 0;    // 6 P + 12 L D T
  int64_t tokens_per_step = 0;
  double gemm_rate = 0;  // FLOP/s, measured on the model's own products
  StepSample speed;
  double tokens_per_s = 0;
  double share_of_gemm = 0;
  double seconds = 0;  // until train.steps; evaluation, samples and saving left out
  std::vector<std::string> remarks;

  // What the process will have resident at most: while training, and when a checkpoint is saved.
  int64_t training_rss() const { return process_bytes + memory.pool + memory.packed; }
  int64_t saving_rss() const { return training_rss() + memory.flushed + memory.copied + memory.checkpoint; }
};

// The model with its zeros filled in. vocab_size 0 is the tokenizer's: data.train is read for it when it is set. Error (kUsage)
// when it can't be known: the tokenizer is made from a text and data.train is empty.
Config with_known_vocabulary(Config config);

// Allocates and measures nothing.
Plan plan_sizes(const Config& config);
// Fills in what is measured, in about two seconds, on the calling thread's Threads.
void measure_speed(Plan& plan);

}  // namespace rowan
