// Measures training steps of a model on random tokens, beside the machine's matrix-multiply rate in the same process.
#pragma once

#include <cstdint>
#include <vector>

#include "train/config.h"
#include "train/step_profile.h"

namespace rowan {

struct StepBenchOptions {
  int64_t steps = 0;  // measured steps; 0: at least 5, and more while they take less than 3 seconds
  bool profile = false;
};

struct StepBench {
  int64_t parameters = 0, tokens_per_step = 0, steps = 0;
  double start_ms = 0;             // model, optimizer state and the first step
  double step_ms = 0;              // median
  double low_ms = 0, high_ms = 0;  // a tenth of the steps is faster, a tenth slower
  double flops_per_token = 0;      // 6 P + 12 L D T
  double gflops = 0;               // of those FLOPs, at the median
  double sgemm_gflops = 0;         // of this model's own products, before and after the steps
  double copy_gb_per_s = 0;
  double tokens_per_s = 0;
  int64_t peak_rss_bytes = 0;
  int64_t pool_peak_bytes = 0;
  std::vector<OpTime> profile;  // of all measured steps

  double share_of_sgemm() const { return gflops / sgemm_gflops; }
};

// config.model must be resolved. Runs on the calling thread's Threads.
StepBench bench_step(const Config& config, const StepBenchOptions& options);

}  // namespace rowan
