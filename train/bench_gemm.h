// Measures the matrix products of a model's training step: ours beside one call of each library with threads of its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rowan {

// The linear layers of a GPT-2 shaped block, for N tokens, and with vocab_size > 0 the LM head.
struct GemmBenchModel {
  std::string name;
  int64_t tokens;      // N
  int64_t d_model;     // D; the feed-forward width is 4 D
  int64_t n_layer;     // how often a block's layers count in a total
  int64_t vocab_size;  // V
};

// Those of docs/PERFORMANCE.md, called <parameters>/<tokens>: 124M is GPT-2, 0.8M and 10.6M are common character models.
std::vector<GemmBenchModel> default_gemm_bench_models();

struct GemmBenchOptions {
  std::vector<GemmBenchModel> models = default_gemm_bench_models();
  int threads = 1;
  int rounds = 7;  // samples of each product, the three paths taking turns
  double settle_seconds =
      0.1;  // before each sample: OpenBLAS threads spin that long after their last work, and would slow the next path
  double sample_seconds = 0.02;  // a product is repeated until a sample takes about this long
};

struct GemmBenchRow {
  std::string model = {}, layer = {}, pass = {};  // pass: "forward", "dx", "dw"
  int64_t m = 0, n = 0, k = 0;
  int64_t count = 1;      // how often a step does this
  std::string path = {};  // "rowan", "openblas", "onednn"
  double median_ms = 0;
  double gflops = 0;  // 2 m n k / median time
};

// Rows in order of model, layer, pass and path. Time is wall-clock: other load on the machine shows in it. A path that can't do
// the product in this build (oneDNN in double precision) has no rows.
std::vector<GemmBenchRow> bench_gemm(const GemmBenchOptions& options);

// A step's products of one model on one path: all operations over the sum of the medians, GFLOP/s.
struct GemmBenchTotal {
  std::string model, path;
  double ms = 0, gflops = 0;
};
std::vector<GemmBenchTotal> total_by_model(const std::vector<GemmBenchRow>& rows);

}  // namespace rowan
