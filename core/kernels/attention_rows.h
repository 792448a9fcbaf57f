// Row-wise work on tiles of attention scores: the online softmax and its backward. Single-threaded; rows are independent.
//
// A tile holds `rows` queries by `keys` keys, its rows `ld` apart, ld >= keys rounded up to kLanes. Row r sees the keys
// j <= r + diagonal of the tile (none if that is negative); what it does not see becomes exactly 0.
#pragma once

#include <cstdint>

#include "core/real.h"

namespace rowan {

struct ScoreTile {
  Real* data;
  int64_t ld;
  int64_t rows, keys;
  int64_t diagonal;

  int64_t visible(int64_t r) const { return r + diagonal < 0 ? 0 : (r + diagonal < keys ? r + diagonal + 1 : keys); }
};

// Scores become exp(score - m), m the largest score of the row so far. row_max, row_sum: what the row has seen, updated to
// include this tile (start with -infinity and 0, and a tile in which every row sees a key). rescale: exp(old m - m), by which what
// was summed up so far must be multiplied. Online softmax: Milakov, Gimelshein, "Online normalizer calculation for softmax", 2018.
void softmax_tile(const ScoreTile& scores, Real* row_max, Real* row_sum, Real* rescale);

// Scores become probabilities, exp(score - log_sum[r]), where log_sum is the row's log-sum-exp over all its keys.
void probabilities_tile(const ScoreTile& scores, const Real* log_sum);

// d_probabilities becomes the gradient of the scores: p * (dp - delta[r]), delta[r] = sum over all keys of p dp.
void softmax_backward_tile(const ScoreTile& probabilities, Real* d_probabilities, const Real* delta);

// out = tile * factors where it is visible, 0 elsewhere; both are laid out as the tile. out may be the tile's data.
void multiply_visible(const ScoreTile& tile, const Real* factors, Real* out);

// out (rows,n) = or += factor * in, rows in_ld and out_ld apart.
void copy_rows(const Real* in, int64_t in_ld, int64_t rows, int64_t n, Real factor, Real* out, int64_t out_ld);
void add_rows(const Real* in, int64_t in_ld, int64_t rows, int64_t n, Real factor, Real* out, int64_t out_ld);

// out (n,rows) = in (rows,n) transposed.
void transpose(const Real* in, int64_t in_ld, int64_t rows, int64_t n, Real* out, int64_t out_ld);

// x[r, :] *= factor[r] for rows of n elements, n a multiple of kLanes.
void scale_rows(Real* x, int64_t rows, int64_t n, const Real* factor);

}  // namespace rowan
