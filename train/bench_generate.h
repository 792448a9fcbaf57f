// Measures generation, one token at a time for one stream with a key/value cache, beside the memory's speed.
#pragma once

#include <cstdint>

#include "train/config.h"

namespace rowan {

struct GenerateBenchOptions {
  int64_t prompt = 0;  // random tokens before the measured ones; 0: 16, or a quarter of learned positions when these are fewer
  int64_t tokens = 0;  // measured; 0: 128, or what learned positions leave
};

struct GenerateBench {
  int64_t parameters = 0, prompt = 0, tokens = 0;
  double prompt_ms = 0;            // the whole prompt, at once
  double token_ms = 0;             // median
  double low_ms = 0, high_ms = 0;  // a tenth of the tokens is faster, a tenth slower
  double weight_bytes = 0;         // read for every token: all but the rows that are looked up
  double copy_gb_per_s = 0;
  double limit_ms() const { return weight_bytes / copy_gb_per_s / 1e6; }
  double share_of_limit() const { return limit_ms() / token_ms; }
};

// config.model must be resolved. Error when prompt, tokens and the one token that warms up are more than learned positions.
// Runs on the calling thread's Threads.
GenerateBench bench_generate(const Config& config, const GenerateBenchOptions& options);

}  // namespace rowan
