#include "core/kernels/attention_tiles.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"

namespace rowan {
namespace {

// Near the diagonal a tile is cut into strips of this many rows or keys, each with its own limit.
constexpr int64_t kStrip = 8;

}  // namespace

void copy_head(const Real* in, int64_t in_ld, int64_t rows, int64_t n, Real* out, int64_t out_ld) {
  for (int64_t r = 0; r < rows; ++r) {
    std::memcpy(out + r * out_ld, in + r * in_ld, static_cast<size_t>(n) * sizeof(Real));
    std::fill(out + r * out_ld + n, out + (r + 1) * out_ld, Real(0));
  }
}

void transpose_into_panel(const Real* in, int64_t in_ld, int64_t rows, int64_t n, Real* panel, int64_t first) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t d = 0; d < n; ++d) panel[d * KvCache::kPanel + first + r] = in[r * in_ld + d];
}

void rotate_rows(Real* head, int64_t ld, int64_t rows, const RopeTable& table, int64_t first) {
  for (int64_t r = 0; r < rows; ++r) rotate(head + r * ld, 1, 0, table.cos(first + r), table.sin(first + r), table.rope());
}

void rotate_rows_back(Real* head, int64_t ld, int64_t rows, const RopeTable& table, int64_t first) {
  for (int64_t r = 0; r < rows; ++r) rotate_back(head + r * ld, 1, 0, table.cos(first + r), table.sin(first + r), table.rope());
}

void visible_scores(TileOperand q, int64_t head_dim, const Real* panels, const ScoreTile& tile) {
  constexpr int64_t kPanel = KvCache::kPanel;
  for (int64_t key0 = 0; key0 < tile.keys; key0 += kPanel) {
    const TileOperand keys{panels + key0 * head_dim, kPanel};
    const int64_t n = std::min(kPanel, tile.keys - key0), diagonal = tile.diagonal - key0;
    const int64_t step = diagonal >= n - 1 ? tile.rows : kStrip;
    for (int64_t r = 0; r < tile.rows; r += step) {
      const int64_t rows = std::min(step, tile.rows - r), seen = std::min(n, diagonal + r + rows);
      if (seen > 0)
        tile_product(rows, round_up_to_lane(seen), head_dim, {q.data + r * q.ld, q.ld}, keys, tile.data + r * tile.ld + key0,
                     tile.ld, false);
    }
  }
}

void visible_product(const ScoreTile& tile, TileOperand b, int64_t width, Real* out, int64_t ldo, bool accumulate) {
  const int64_t step = tile.diagonal >= tile.keys - 1 ? tile.rows : kStrip;
  for (int64_t r = 0; r < tile.rows; r += step) {
    const int64_t rows = std::min(step, tile.rows - r), seen = std::clamp(tile.diagonal + r + rows, int64_t{0}, tile.keys);
    tile_product(rows, width, seen, {tile.data + r * tile.ld, tile.ld}, b, out + r * ldo, ldo, accumulate);
  }
}

void visible_product_transposed(const ScoreTile& tile, TileOperand b, int64_t width, Real* out, int64_t ldo, bool accumulate) {
  const int64_t step = tile.diagonal >= tile.keys - 1 ? tile.keys : kStrip;
  for (int64_t j = 0; j < tile.keys; j += step) {
    const int64_t keys = std::min(step, tile.keys - j);
    const int64_t first = step == kStrip ? std::clamp(j - tile.diagonal, int64_t{0}, tile.rows) : 0;  // first row that sees key j
    tile_product_transposed(keys, width, tile.rows - first, {tile.data + first * tile.ld + j, tile.ld},
                            {b.data + first * b.ld, b.ld}, out + j * ldo, ldo, accumulate);
  }
}

void dropout_tile(const AttentionDropout& dropout, int64_t positions, int64_t row_of_mask, int64_t key0, const ScoreTile& tile,
                  Real* factors) {
  const Real keep = static_cast<Real>(1 / (1 - dropout.p));
  const int64_t row_length = round_up_to_lane(positions);
  for (int64_t r = 0; r < tile.rows; ++r)
    for (int64_t j = 0; j < tile.visible(r); ++j) {
      const int64_t index = (row_of_mask + r) * row_length + key0 + j;
      factors[r * tile.ld + j] = random_uniform(dropout.key, static_cast<uint64_t>(index)) < dropout.p ? 0 : keep;
    }
}

}  // namespace rowan
