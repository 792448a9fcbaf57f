// What this machine can do at most, measured in this process: the limits that training is compared with.
//
// Wall-clock time: other load on the machine shows in it. The products are those of Rowan's own path (core/kernels/gemm.h), on
// the calling thread's Threads; `rowan bench gemm` compares that path with the libraries' own threads.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "train/step_cost.h"

namespace rowan {

// What benchmarks time with.
using BenchClock = std::chrono::steady_clock;
double seconds_since(BenchClock::time_point start);

double median_of(std::vector<double> values);                     // values must not be empty
double quantile_of(std::vector<double> values, double fraction);  // by linear interpolation; fraction in [0, 1]

// FLOP/s over all of a step's products, each at its median time, weighted by how often the step does it. Every product runs at
// least once after a warm-up and then, in turns, as long as `seconds` lasts.
double measured_gemm_rate(const std::vector<StepProduct>& products, double seconds);

// A figure for a live line, in about `seconds`: the products of mlp.up, the largest of a block, cut where they would take longer.
double quick_gemm_rate(const StepShape& shape, double seconds = 0.1);

// Bytes a second that copying moves, reads and writes both counted: the best of `repeats` copies of an array on all threads. Of
// memory as long as two such arrays are larger than the caches.
double measured_copy_rate(int64_t bytes = int64_t{64} << 20, int repeats = 5);

}  // namespace rowan
