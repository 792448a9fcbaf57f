// What the forward and the backward of attention share: copying heads out of qkv, and products over the visible part of a tile.
// Single-threaded; internal to core/kernels.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/kernels/attention.h"
#include "core/kernels/attention_product.h"
#include "core/kernels/attention_rows.h"

namespace rowan {

// From this many pairs of a sequence and a key/value head on, pieces of parallel work are such pairs, some of them a piece. Below,
// pieces are tiles.
inline constexpr int64_t kManyHeadGroups = 8;
inline int64_t head_groups_a_piece(int64_t groups) {
  return std::clamp<int64_t>(groups / 16, 1, 4);
}

// Elements of memory that the backward of one such pair takes.
int64_t attention_backward_elements(const AttentionShape& shape, int64_t positions);

// A head at `rows` positions: rows x n from `in`, rows in_ld apart, times `factor`, to `out`, rows out_ld apart; columns n ..
// out_ld become 0. Rotated unless rope is null, by the table's entries first, first + 1, ...
void load_head(const Real* in, int64_t in_ld, int64_t rows, int64_t n, Real factor, const RopeTable* rope, int64_t first, Real* out,
               int64_t out_ld);

// Where a sequence's keys and values of one head stand, laid out for the products, position 0 first.
template <class T>
struct KeyValueHead {
  T* key_panels;  // (panels, hd, KvCache::kPanel)
  T* values;      // (positions, hd rounded up to lanes)
};

// Lays out `rows` positions from `position` on, which must not cross the border of a panel. k and v are (rows,hd), rows `ld` apart.
void store_keys_values(const Real* k, const Real* v, int64_t ld, int64_t rows, int64_t head_dim, const RopeTable* rope,
                       int64_t first, int64_t position, const KeyValueHead<Real>& out);

// tile = q (rows,hd) times the transposed keys, for what is visible; the rest of a row stays undefined. `panels` are as in KvCache
// and begin with the tile's first key.
void visible_scores(TileOperand q, int64_t head_dim, const Real* panels, const ScoreTile& tile);

// out (rows, width) = or += tile (rows,keys) times b (keys,width), where the tile is 0 outside its visible part.
void visible_product(const ScoreTile& tile, TileOperand b, int64_t width, Real* out, int64_t ldo, bool accumulate);

// out (keys, width) = or += the transposed tile times b (rows,width).
void visible_product_transposed(const ScoreTile& tile, TileOperand b, int64_t width, Real* out, int64_t ldo, bool accumulate);

// The tile's dropout factors, 0 or 1/(1-p), as a tile of its own, rows `ld` apart. row_of_mask counts rows of the whole mask
// (B,H,T,T); key0 is the tile's first key.
void dropout_tile(const AttentionDropout& dropout, int64_t positions, int64_t row_of_mask, int64_t key0, const ScoreTile& tile,
                  Real* factors);

}  // namespace rowan
