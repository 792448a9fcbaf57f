#include "core/kernels/gemm.h"

#include <cblas.h>

#include <algorithm>
#include <limits>

#include "core/error.h"
#include "core/parallel.h"

namespace rowan {
namespace {

constexpr int64_t kTile = 384;

int blas_int(int64_t value) {
  ROWAN_CHECK(value >= 0 && value <= std::numeric_limits<int>::max(), "[gemm] a dimension of ", value,
              " is too large for the BLAS");
  return static_cast<int>(value);
}

CBLAS_TRANSPOSE blas_op(Op op) {
  return op == Op::kNone ? CblasNoTrans : CblasTrans;
}

// The library must not start threads of its own under ours. Its setting is one for the process.
void hold_blas_to_one_thread() {
  static const bool once = (openblas_set_num_threads(1), true);
  static_cast<void>(once);
}

}  // namespace

void gemm_serial(Op op_a, Op op_b, int64_t m, int64_t n, int64_t k, Real alpha, const Real* a, int64_t lda, const Real* b,
                 int64_t ldb, Real beta, Real* c, int64_t ldc) {
  hold_blas_to_one_thread();
  if (m == 0 || n == 0) return;
#ifdef ROWAN_REAL_DOUBLE
  const auto call = cblas_dgemm;
#else
  const auto call = cblas_sgemm;
#endif
  call(CblasRowMajor, blas_op(op_a), blas_op(op_b), blas_int(m), blas_int(n), blas_int(k), alpha, a,
       blas_int(std::max<int64_t>(1, lda)), b, blas_int(std::max<int64_t>(1, ldb)), beta, c, blas_int(ldc));
}

void gemm(Op op_a, Op op_b, int64_t m, int64_t n, int64_t k, Real alpha, const Real* a, int64_t lda, const Real* b, int64_t ldb,
          Real beta, Real* c, int64_t ldc, const GemmEpilogue& epilogue) {
  if (m == 0 || n == 0) return;
  const bool cut_rows = m >= n;
  const int64_t longer = cut_rows ? m : n;
  parallel_ranges(longer, kTile, [&](int64_t begin, int64_t end) {
    GemmTile tile{cut_rows ? begin : 0, cut_rows ? 0 : begin, cut_rows ? end - begin : m, cut_rows ? n : end - begin, nullptr, ldc};
    tile.data = c + tile.row * ldc + tile.col;
    const Real* a_tile = a + tile.row * (op_a == Op::kNone ? lda : 1);
    const Real* b_tile = b + tile.col * (op_b == Op::kNone ? 1 : ldb);
    gemm_serial(op_a, op_b, tile.rows, tile.cols, k, alpha, a_tile, lda, b_tile, ldb, beta, tile.data, ldc);
    if (epilogue.run) epilogue.run(epilogue.context, tile);
  });
}

}  // namespace rowan
