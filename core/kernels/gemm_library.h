// One matrix product as one call of a BLAS: which of the two libraries serves it, and the call. gemm.h is what others use.
//
// Which library is best at what, measured one thread a call on AVX-512 (docs/PERFORMANCE.md): oneDNN's generated kernels reach
// 97 % of the processor's peak on products of a million multiplications and more, where OpenBLAS reaches 85 %; below that
// OpenBLAS' kernels for small matrices, which multiply without packing, are up to twice as fast. The choice depends on the
// shape and, as the speed does, on the instruction set, never on the thread.
#pragma once

#include <cstdint>

#include "core/kernels/gemm.h"

namespace rowan {

enum class GemmLibrary { kOpenBlas, kOneDnn };

// Arguments as in gemm.h.
struct GemmCall {
  Op op_a, op_b;
  int64_t m, n, k;
  Real alpha;
  const Real* a;
  int64_t lda;
  const Real* b;
  int64_t ldb;
  Real beta;
  Real* c;
  int64_t ldc;
};

GemmLibrary best_library(const GemmCall& call);

// On the calling thread. `library` must be able to do it: oneDNN knows float only.
void run_gemm(GemmLibrary library, const GemmCall& call);

// With `threads` threads of the library's own, started outside ours: for measurements only, as the result may depend on their
// number and OpenBLAS' setting is one for the process.
void run_gemm_with_library_threads(GemmLibrary library, const GemmCall& call, int threads);

}  // namespace rowan
