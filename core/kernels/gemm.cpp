#include "core/kernels/gemm.h"

#include <algorithm>

#include "core/error.h"
#include "core/kernels/gemm_library.h"
#include "core/parallel.h"

namespace rowan {
namespace {

constexpr int64_t kLargestTile = 384;  // a side; larger ones are no faster and leave less to share out
constexpr int64_t kSmallestTile = 48;
constexpr int64_t kRowStep = 8, kColumnStep = 48;  // of the libraries' inner kernels: other sizes waste a part of the last one
constexpr int64_t kWantedTiles = 12;               // shared out evenly over 2, 3, 4, 6 or 12 threads
constexpr double kSmallestWork = 4e6;              // floating-point operations worth waking a thread for: about 40 microseconds
constexpr double kWorkPerElement = 20;             // of A, B and C, as operations in the time that memory takes: counts in decoding

struct Grid {
  int64_t rows, cols;            // tiles
  int64_t tile_rows, tile_cols;  // elements
  int64_t tiles() const { return rows * cols; }
};

int64_t divide_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// A side of n elements in equal parts of at most about `tile`.
int64_t part(int64_t n, int64_t tile, int64_t step) {
  return divide_up(divide_up(n, divide_up(n, tile)), step) * step;
}

Grid cut_in(int64_t m, int64_t n, int64_t tile) {
  Grid g{};
  g.tile_rows = part(m, tile, kRowStep);
  g.tile_cols = part(n, tile, kColumnStep);
  g.rows = divide_up(m, g.tile_rows);
  g.cols = divide_up(n, g.tile_cols);
  return g;
}

// A function of the sizes alone: that is what makes results independent of the number of threads.
Grid cut(int64_t m, int64_t n, int64_t k) {
  const double dm = static_cast<double>(m), dn = static_cast<double>(n), dk = static_cast<double>(k);
  const double work = 2 * dm * dn * dk + kWorkPerElement * (dm * dk + dk * dn + dm * dn);
  const auto most_tiles = static_cast<int64_t>(std::min(work / kSmallestWork, 1e15));
  if (most_tiles <= 1) return {1, 1, m, n};
  Grid best = cut_in(m, n, kLargestTile);
  for (int64_t tile = kLargestTile - kColumnStep; tile >= kSmallestTile && best.tiles() < kWantedTiles; tile -= kColumnStep) {
    const Grid finer = cut_in(m, n, tile);
    if (finer.tiles() > most_tiles) break;
    best = finer;
  }
  return best;
}

}  // namespace

void gemm_serial(Op op_a, Op op_b, int64_t m, int64_t n, int64_t k, Real alpha, const Real* a, int64_t lda, const Real* b,
                 int64_t ldb, Real beta, Real* c, int64_t ldc) {
  if (m == 0 || n == 0) return;
  const GemmCall call{op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc};
  run_gemm(best_library(call), call);
}

void gemm(Op op_a, Op op_b, int64_t m, int64_t n, int64_t k, Real alpha, const Real* a, int64_t lda, const Real* b, int64_t ldb,
          Real beta, Real* c, int64_t ldc, const GemmEpilogue& epilogue) {
  if (m == 0 || n == 0) return;
  const Grid grid = cut(m, n, k);
  parallel_pieces(grid.tiles(), [&](int64_t piece) {
    const int64_t row = piece / grid.cols * grid.tile_rows, col = piece % grid.cols * grid.tile_cols;
    const GemmTile tile{row, col, std::min(grid.tile_rows, m - row), std::min(grid.tile_cols, n - col), c + row * ldc + col, ldc};
    const Real* a_tile = a + row * (op_a == Op::kNone ? lda : 1);
    const Real* b_tile = b + col * (op_b == Op::kNone ? 1 : ldb);
    gemm_serial(op_a, op_b, tile.rows, tile.cols, k, alpha, a_tile, lda, b_tile, ldb, beta, tile.data, ldc);
    if (epilogue.run) epilogue.run(epilogue.context, tile);
  });
}

}  // namespace rowan
