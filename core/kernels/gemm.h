// Matrix products: row-major C (M,N) = alpha * op(A) op(B) + beta * C.
//
//   gemm(Op::kNone, Op::kTranspose, m, n, k, 1, x, k, w, k, 0, y, n);          // y (m,n) = x (m,k) w (n,k)^T
//
// op(A) is (M,K) and op(B) is (K,N). lda, ldb, ldc are the distances between rows as they lie in memory, so A is stored as
// (M,K) for Op::kNone and as (K,M) for Op::kTranspose. beta = 0 stores without reading C: it may be uninitialized. K = 0
// leaves beta * C. Any size may be 0.
//
// The result depends on the arguments alone, never on the number of threads: C is cut into tiles as a function of (M,N,K), each
// tile is one single-threaded library call over the whole of K, and a tile runs on one thread.
//
// Under UseMatmulPrecision(kBfloat16) large products round A and B to bfloat16 first (core/kernels/gemm_bf16.h).
//
// Not here: integer products; C must not overlap A or B.
#pragma once

#include <cstdint>

#include "core/real.h"

namespace rowan {

enum class Op { kNone, kTranspose };

// What happens to a tile of C when it is final, while it is still in cache: C[row..row+rows, col..col+cols]. `tile` points to
// its first element; its rows are ldc apart. Called once a tile, concurrently for different tiles.
struct GemmTile {
  int64_t row, col, rows, cols;
  Real* data;
  int64_t ld;
};
struct GemmEpilogue {
  void (*run)(const void* context, const GemmTile& tile) = nullptr;
  const void* context = nullptr;
};

// The largest tile of C that gemm() makes for these sizes: for planning memory.
struct GemmTileSize {
  int64_t rows = 0, cols = 0;
};
GemmTileSize gemm_tile_size(int64_t m, int64_t n, int64_t k);

// In parallel on the calling thread's Threads.
void gemm(Op op_a, Op op_b, int64_t m, int64_t n, int64_t k, Real alpha, const Real* a, int64_t lda, const Real* b, int64_t ldb,
          Real beta, Real* c, int64_t ldc, const GemmEpilogue& epilogue = {});

enum class MatmulPrecision { kFloat32, kBfloat16 };

// What gemm() called by this thread multiplies in, while it lives. kBfloat16 needs bf16_available().
class UseMatmulPrecision {
 public:
  explicit UseMatmulPrecision(MatmulPrecision precision);
  ~UseMatmulPrecision();
  UseMatmulPrecision(const UseMatmulPrecision&) = delete;
  UseMatmulPrecision& operator=(const UseMatmulPrecision&) = delete;

 private:
  MatmulPrecision previous_;
};

// On the calling thread alone, as one call: for use inside a piece of a parallel loop.
void gemm_serial(Op op_a, Op op_b, int64_t m, int64_t n, int64_t k, Real alpha, const Real* a, int64_t lda, const Real* b,
                 int64_t ldb, Real beta, Real* c, int64_t ldc);

}  // namespace rowan
