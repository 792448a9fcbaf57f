#include "core/kernels/gemm.h"

#include <algorithm>

#include "core/error.h"
#include "core/kernels/gemm_bf16.h"
#include "core/kernels/gemm_library.h"
#include "core/kernels/reduce.h"
#include "core/parallel.h"

namespace rowan {
namespace {

// All measured (docs/PERFORMANCE.md, section "Matrix multiply").
constexpr int64_t kTileSide = 384;  // larger ones are no faster and leave less to share out
constexpr int64_t kWideTile = 768;  // except that A is packed once for all columns: pays where rows alone give tiles enough
constexpr int64_t kFewestRows = 16, kFewestColumns = 96;
constexpr int64_t kRowStep = 8, kColumnStep = 48;  // of the libraries' inner kernels: other sizes waste a part of the last one
constexpr int64_t kManyTiles = 32;                 // from here on an uneven share is small
constexpr int64_t kWantedTiles = 4;     // even for 2 and 4 threads; 12 would cost up to a sixth of the speed where M = 256
constexpr double kSmallestWork = 4e6;   // floating-point operations worth waking a thread for: about 40 microseconds
constexpr double kWorkPerElement = 20;  // of A, B and C, as operations in the time that memory takes: counts in decoding

int64_t divide_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// One side, cut into equal parts that are multiples of `step`.
struct Side {
  int64_t size, step;
  int64_t part = 0, parts = 0;

  void cut(int64_t wanted_parts) {
    part = divide_up(divide_up(size, wanted_parts), step) * step;
    parts = divide_up(size, part);
  }
};

struct Grid {
  Side rows, cols;
  int64_t tiles() const { return rows.parts * cols.parts; }
};

// A function of the sizes alone: that is what makes results independent of the number of threads.
Grid cut(int64_t m, int64_t n, int64_t k) {
  Grid g{{m, kRowStep}, {n, kColumnStep}};
  const double dm = static_cast<double>(m), dn = static_cast<double>(n), dk = static_cast<double>(k);
  const double work = 2 * dm * dn * dk + kWorkPerElement * (dm * dk + dk * dn + dm * dn);
  if (work < 2 * kSmallestWork) {
    g.rows.cut(1);
    g.cols.cut(1);
    return g;
  }
  g.rows.cut(divide_up(m, kTileSide));
  g.cols.cut(divide_up(n, g.rows.parts >= 2 * kWantedTiles ? kWideTile : kTileSide));
  if (g.tiles() > kWantedTiles && g.tiles() < kManyTiles && g.tiles() % kWantedTiles != 0) {
    Side& side = g.rows.parts >= g.cols.parts ? g.rows : g.cols;  // the one that grows least: 11 tiles become 12
    side.cut(divide_up(side.parts, kWantedTiles) * kWantedTiles);
  }
  while (g.tiles() < kWantedTiles && work >= 2 * kSmallestWork * static_cast<double>(g.tiles())) {
    const bool rows_can = g.rows.part >= 2 * kFewestRows, cols_can = g.cols.part >= 2 * kFewestColumns;
    if (!rows_can && !cols_can) break;
    Side& side = cols_can && (g.cols.part >= g.rows.part || !rows_can) ? g.cols : g.rows;
    side.cut(2 * side.parts);
  }
  return g;
}

thread_local MatmulPrecision matmul_precision = MatmulPrecision::kFloat32;

// One row times the rows of B, as in decoding, where the time is that of reading B: one stream of memory is read faster than the
// several that the libraries' kernels read side by side.
bool is_row_times_rows(Op op_a, Op op_b, int64_t m) {
  return m == 1 && op_a == Op::kNone && op_b == Op::kTranspose;
}

void row_times_rows(int64_t n, int64_t k, Real alpha, const Real* a, const Real* b, int64_t ldb, Real beta, Real* c) {
  constexpr int64_t kBlock = 64;
  Real dots[kBlock];
  for (int64_t j = 0; j < n; j += kBlock) {
    const int64_t count = std::min(kBlock, n - j);
    dot_rows(a, 0, b + j * ldb, ldb, count, k, dots);
    for (int64_t i = 0; i < count; ++i) c[j + i] = beta == 0 ? alpha * dots[i] : alpha * dots[i] + beta * c[j + i];
  }
}

void run_tile(MatmulPrecision precision, const GemmCall& g) {
  if (g.m == 0 || g.n == 0) return;
  if (is_row_times_rows(g.op_a, g.op_b, g.m)) return row_times_rows(g.n, g.k, g.alpha, g.a, g.b, g.ldb, g.beta, g.c);
  if (precision == MatmulPrecision::kBfloat16 && bf16_serves(g)) return gemm_bf16(g);
  run_gemm(best_library(g), g);
}

}  // namespace

UseMatmulPrecision::UseMatmulPrecision(MatmulPrecision precision) : previous_(matmul_precision) {
  ROWAN_CHECK(precision != MatmulPrecision::kBfloat16 || bf16_available(), "[gemm] no bfloat16 products on this processor");
  matmul_precision = precision;
}
UseMatmulPrecision::~UseMatmulPrecision() {
  matmul_precision = previous_;
}

GemmTileSize gemm_tile_size(int64_t m, int64_t n, int64_t k) {
  const Grid grid = cut(m, n, k);
  return {std::min(grid.rows.part, m), std::min(grid.cols.part, n)};
}

void gemm_serial(Op op_a, Op op_b, int64_t m, int64_t n, int64_t k, Real alpha, const Real* a, int64_t lda, const Real* b,
                 int64_t ldb, Real beta, Real* c, int64_t ldc) {
  run_tile(MatmulPrecision::kFloat32, {op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc});
}

void gemm(Op op_a, Op op_b, int64_t m, int64_t n, int64_t k, Real alpha, const Real* a, int64_t lda, const Real* b, int64_t ldb,
          Real beta, Real* c, int64_t ldc, const GemmEpilogue& epilogue) {
  if (m == 0 || n == 0) return;
  const Grid grid = cut(m, n, k);
  const MatmulPrecision precision = matmul_precision;  // of this thread, for those that run the tiles
  parallel_pieces(grid.tiles(), [&](int64_t piece) {
    const int64_t row = piece / grid.cols.parts * grid.rows.part, col = piece % grid.cols.parts * grid.cols.part;
    const GemmTile tile{row, col, std::min(grid.rows.part, m - row), std::min(grid.cols.part, n - col), c + row * ldc + col, ldc};
    const Real* a_tile = a + row * (op_a == Op::kNone ? lda : 1);
    const Real* b_tile = b + col * (op_b == Op::kNone ? 1 : ldb);
    run_tile(precision, {op_a, op_b, tile.rows, tile.cols, k, alpha, a_tile, lda, b_tile, ldb, beta, tile.data, ldc});
    if (epilogue.run) epilogue.run(epilogue.context, tile);
  });
}

}  // namespace rowan
