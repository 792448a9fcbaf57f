#include "core/kernels/attention_tiles.h"

#include <algorithm>

#include "core/kernels/dropout.h"

namespace rowan {
namespace {

// Near the diagonal a tile is cut into strips of this many rows or keys, each with its own limit.
constexpr int64_t kStrip = 8;

}  // namespace

void load_head(const Real* in, int64_t in_ld, int64_t rows, int64_t n, Real factor, const RopeTable* rope, int64_t first, Real* out,
               int64_t out_ld) {
  copy_rows(in, in_ld, rows, n, factor, out, out_ld);
  for (int64_t r = 0; r < rows; ++r) std::fill(out + r * out_ld + n, out + (r + 1) * out_ld, Real(0));
  if (rope != nullptr) rotate_positions(out, rows, out_ld, *rope, first);
}

void store_keys_values(const Real* k, const Real* v, int64_t ld, int64_t rows, int64_t head_dim, const RopeTable* rope,
                       int64_t first, int64_t position, const KeyValueHead<Real>& out) {
  constexpr int64_t kPanel = KvCache::kPanel;
  const int64_t width = round_up_to_lanes(head_dim), column = position % kPanel;
  ROWAN_ASSERT(column + rows <= kPanel);
  Real* panel = out.key_panels + (position - column) * head_dim;
  if (rope != nullptr) {
    // The values' place serves as a buffer: it is overwritten below.
    load_head(k, ld, rows, head_dim, 1, rope, first, out.values + position * width, width);
    transpose(out.values + position * width, width, rows, head_dim, panel + column, kPanel);
  } else {
    transpose(k, ld, rows, head_dim, panel + column, kPanel);
  }
  load_head(v, ld, rows, head_dim, 1, nullptr, 0, out.values + position * width, width);
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
        tile_product(rows, round_up_to_lanes(seen), head_dim, {q.data + r * q.ld, q.ld}, keys, tile.data + r * tile.ld + key0,
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
  const int64_t row_length = round_up_to_lanes(positions);  // rows begin at a whole block of random numbers
  for (int64_t r = 0; r < tile.rows; ++r)
    if (const int64_t visible = tile.visible(r); visible > 0)
      dropout_scale(dropout.key, dropout.p, static_cast<uint64_t>((row_of_mask + r) * row_length + key0), visible,
                    factors + r * tile.ld);
}

}  // namespace rowan
