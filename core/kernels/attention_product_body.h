// The body of core/kernels/attention_product.cpp, included there once per instruction set, inside a namespace of its own, with
//   ROWAN_TARGET        the function attribute that selects the instruction set
//   ROWAN_VECTOR_BYTES  the width of its registers
//   ROWAN_BLOCK_ROWS    rows of c that are held in registers at a time, times two registers each
// No include guard: that is the purpose.

typedef Real Vector __attribute__((vector_size(ROWAN_VECTOR_BYTES)));
// The same in memory, where nothing is known about alignment.
typedef Real StoredVector __attribute__((vector_size(ROWAN_VECTOR_BYTES), aligned(sizeof(Real)), may_alias));
constexpr int kWidth = ROWAN_VECTOR_BYTES / sizeof(Real);

// One block of c in registers: kRows x kVectors accumulators.
template <int kRows, int kVectors, bool kTransposed>
ROWAN_TARGET inline __attribute__((always_inline)) void block(int64_t k, const Real* a, int64_t lda, const Real* b, int64_t ldb,
                                                              Real* c, int64_t ldc, bool accumulate) {
  Vector sum[kRows][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) sum[r][v] = Vector{};
  for (int64_t p = 0; p < k; ++p) {
    Vector row[kVectors];
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) row[v] = *reinterpret_cast<const StoredVector*>(b + p * ldb + v * kWidth);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const Real factor = kTransposed ? a[p * lda + r] : a[r * lda + p];
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) sum[r][v] += row[v] * factor;
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
      StoredVector* out = reinterpret_cast<StoredVector*>(c + r * ldc + v * kWidth);
      if (accumulate) sum[r][v] += *out;
      *out = sum[r][v];
    }
}

// All rows of one strip of columns; the strip of b stays in the first-level cache.
template <int kVectors, bool kTransposed>
ROWAN_TARGET void strip(int64_t m, int64_t k, TileOperand a, const Real* b, int64_t ldb, Real* c, int64_t ldc, bool accumulate) {
  const int64_t step = kTransposed ? 1 : a.ld;
  int64_t i = 0;
  for (; i + ROWAN_BLOCK_ROWS <= m; i += ROWAN_BLOCK_ROWS)
    block<ROWAN_BLOCK_ROWS, kVectors, kTransposed>(k, a.data + i * step, a.ld, b, ldb, c + i * ldc, ldc, accumulate);
  for (; i + 2 <= m; i += 2) block<2, kVectors, kTransposed>(k, a.data + i * step, a.ld, b, ldb, c + i * ldc, ldc, accumulate);
  for (; i < m; ++i) block<1, kVectors, kTransposed>(k, a.data + i * step, a.ld, b, ldb, c + i * ldc, ldc, accumulate);
}

template <bool kTransposed>
ROWAN_TARGET void product(int64_t m, int64_t n, int64_t k, TileOperand a, TileOperand b, Real* c, int64_t ldc, bool accumulate) {
  int64_t j = 0;
  for (; j + 2 * kWidth <= n; j += 2 * kWidth) strip<2, kTransposed>(m, k, a, b.data + j, b.ld, c + j, ldc, accumulate);
  for (; j < n; j += kWidth) strip<1, kTransposed>(m, k, a, b.data + j, b.ld, c + j, ldc, accumulate);
}
