#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/kernels/attention_tiles.h"
#include "core/parallel.h"

namespace rowan {
namespace {

constexpr int64_t kQueryTile = 64;
constexpr int64_t kKeyTile = 128;  // a multiple of KvCache::kPanel
static_assert(kKeyTile % KvCache::kPanel == 0);

// All that a piece needs: the queries of one head in a tile, over all keys they see.
class QueryTileForward {
 public:
  QueryTileForward(const Tensor& qkv, const KvCache& cache, const AttentionShape& shape, const RopeTable* rope,
                   const AttentionDropout& dropout)
      : qkv_(qkv),
        cache_(cache),
        shape_(shape),
        rope_(rope),
        dropout_(dropout),
        count_(qkv.shape()[1]),
        first_(cache.length() - count_),
        width_(cache.value_width()) {}

  // Rows [begin, end) of the new positions. out (B,t,H*hd); log_sum (B,H,t) or null.
  void run(int64_t b, int64_t head, int64_t begin, int64_t end, Real* out, Real* log_sum) const {
    const int64_t rows = end - begin, kv_head = head / shape_.queries_per_kv();
    Tensor buffer({rows, 2 * width_ + kKeyTile * (dropout_.p > 0 ? 2 : 1)});
    Real* q = buffer.data();        // (rows,width)
    Real* sum = q + rows * width_;  // (rows,width)
    Real* scores = sum + rows * width_;
    Real row_max[kQueryTile], row_sum[kQueryTile], rescale[kQueryTile];
    std::fill_n(row_max, rows, -std::numeric_limits<Real>::infinity());
    std::fill_n(row_sum, rows, Real(0));
    load_queries(b, head, begin, rows, q);
    const int64_t keys_seen = first_ + end;
    for (int64_t key0 = 0; key0 < keys_seen; key0 += kKeyTile) {
      const ScoreTile tile{scores, kKeyTile, rows, std::min(kKeyTile, keys_seen - key0), first_ + begin - key0};
      visible_scores({q, width_}, shape_.head_dim, cache_.key_panels(b, kv_head) + key0 * shape_.head_dim, tile);
      softmax_tile(tile, row_max, row_sum, rescale);
      if (dropout_.p > 0) drop(tile, (b * shape_.heads + head) * count_ + begin, key0, scores + rows * kKeyTile);
      if (key0 > 0) scale_rows(sum, rows, width_, rescale);
      visible_product(tile, {cache_.values(b, kv_head) + key0 * width_, width_}, width_, sum, width_, key0 > 0);
    }
    for (int64_t r = 0; r < rows; ++r) {
      const Real factor = 1 / row_sum[r];
      Real* y = out + (b * count_ + begin + r) * shape_.out_width() + head * shape_.head_dim;
      for (int64_t d = 0; d < shape_.head_dim; ++d) y[d] = sum[r * width_ + d] * factor;
      if (log_sum != nullptr) log_sum[(b * shape_.heads + head) * count_ + begin + r] = row_max[r] + std::log(row_sum[r]);
    }
  }

 private:
  void load_queries(int64_t b, int64_t head, int64_t begin, int64_t rows, Real* q) const {
    const Real* in = qkv_.data() + (b * count_ + begin) * shape_.qkv_width() + head * shape_.head_dim;
    copy_head(in, shape_.qkv_width(), rows, shape_.head_dim, q, width_);
    if (rope_ != nullptr) rotate_rows(q, width_, rows, *rope_, begin);
    Real scale[kQueryTile];
    std::fill_n(scale, rows, static_cast<Real>(shape_.score_scale()));
    scale_rows(q, rows, width_, scale);
  }

  void drop(const ScoreTile& tile, int64_t row_of_mask, int64_t key0, Real* factors) const {
    dropout_tile(dropout_, count_, row_of_mask, key0, tile, factors);
    for (int64_t r = 0; r < tile.rows; ++r)
      for (int64_t j = 0; j < tile.visible(r); ++j) tile.data[r * tile.ld + j] *= factors[r * tile.ld + j];
  }

  const Tensor& qkv_;
  const KvCache& cache_;
  const AttentionShape& shape_;
  const RopeTable* rope_;
  const AttentionDropout& dropout_;
  int64_t count_, first_, width_;
};

}  // namespace

Tensor attention_forward(const Tensor& qkv, KvCache& cache, const AttentionShape& shape, const RopeTable* rope,
                         const AttentionDropout& dropout, Tensor* log_sum) {
  const int64_t batch = qkv.shape()[0], count = qkv.shape()[1];
  cache.append(qkv, rope);
  Tensor out({batch, count, shape.out_width()});
  if (log_sum != nullptr) *log_sum = Tensor({batch, shape.heads, count});
  const QueryTileForward tile(qkv, cache, shape, rope, dropout);
  const int64_t tiles = (count + kQueryTile - 1) / kQueryTile, sequences = batch * shape.heads;
  // The last tile of a sequence sees most keys and takes longest, so these go first: short pieces fill the end.
  parallel_pieces(sequences * tiles, [&](int64_t piece) {
    const int64_t begin = (tiles - 1 - piece / sequences) * kQueryTile, sequence = piece % sequences;
    tile.run(sequence / shape.heads, sequence % shape.heads, begin, std::min(begin + kQueryTile, count), out.data(),
             log_sum != nullptr ? log_sum->data() : nullptr);
  });
  return out;
}

}  // namespace rowan
