// Measures one training step of an embedding table alone: lookup, gradient, joining of repeated ids, update of the touched rows.
//
// The limit is the time that 28*U*D + 8*N*D bytes take at the machine's copy rate, for U touched rows, N tokens and width D: Adam
// reads a gradient and reads and writes a weight and two moments a row; the lookup and its gradient pass over N rows. Each step
// draws new ids, unless same_ids.
//
// Rows that lie anywhere in a large table cost more than their bytes: each is a page to be found and a wait for memory. What that
// comes to is told by a plain loop, which copies the same rows out and adds to the same rows of three arrays, and does nothing
// else.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rowan {

struct EmbeddingBenchOptions {
  int64_t vocab = 50257;  // V
  int64_t dim = 768;      // D
  int64_t tokens = 4096;  // N
  double zipf = 1;        // id of rank r is drawn with probability in proportion to r^-zipf; 0: all alike
  std::string rule = "sparse_adam";
  bool same_ids = false;  // every step reads the same rows, which the caches then hold: what the work costs without the memory
  int64_t repeats = 0;    // 0: at least 20, and for about 2 seconds
};

struct EmbeddingBench {
  int64_t repeats = 0;
  double touched_rows = 0;                                                // median over the repetitions
  double gather_ms = 0, backward_ms = 0, coalesce_ms = 0, update_ms = 0;  // medians
  double total_ms = 0, low_ms = 0, high_ms = 0;                           // median; a tenth is faster, a tenth slower
  double limit_ms = 0;
  double plain_ms = 0;  // median of the plain loop
  double gb_per_s = 0;  // of the bytes above, at the median
  double copy_gb_per_s = 0;

  double ratio_to_limit() const { return total_ms / limit_ms; }
  double ratio_to_plain() const { return total_ms / plain_ms; }
};

// Runs on the calling thread's Threads. Error for a rule that does not exist.
EmbeddingBench bench_embedding(const EmbeddingBenchOptions& options);

}  // namespace rowan
