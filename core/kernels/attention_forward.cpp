#include <algorithm>
#include <cmath>
#include <limits>

#include "core/kernels/attention_tiles.h"
#include "core/parallel.h"

namespace rowan {
namespace {

constexpr int64_t kQueryTile = 64;
constexpr int64_t kKeyTile = 128;  // a multiple of KvCache::kPanel
static_assert(kKeyTile % KvCache::kPanel == 0);

struct Call {
  const Tensor& qkv;  // (B,t,(H+2K)*hd)
  const AttentionShape& shape;
  const RopeTable* rope;
  const AttentionDropout& dropout;
  int64_t first;  // position of the first query
  Real* out;      // (B,t,H*hd)
  Real* log_sum;  // (B,H,t) or null

  int64_t batch() const { return qkv.shape()[0]; }
  int64_t count() const { return qkv.shape()[1]; }
  int64_t tiles() const { return (count() + kQueryTile - 1) / kQueryTile; }
};

// One tile of queries of one head, over all keys that they see.
class QueryTileForward {
 public:
  QueryTileForward(const Call& call, int64_t b, int64_t head, int64_t tile)
      : c_(call),
        b_(b),
        head_(head),
        begin_(tile * kQueryTile),
        rows_(std::min(kQueryTile, call.count() - begin_)),
        hd_(call.shape.head_dim),
        width_(round_up_to_lanes(hd_)) {}

  // Elements that run() works in.
  static int64_t elements(const Call& call) {
    return kQueryTile * (2 * round_up_to_lanes(call.shape.head_dim) + kKeyTile * (call.dropout.p > 0 ? 2 : 1));
  }

  void run(const KeyValueHead<const Real>& kv, Real* q) const {
    // q is (rows,width)
    Real* sum = q + rows_ * width_;  // (rows,width)
    Real* scores = sum + rows_ * width_;
    Real row_max[kQueryTile], row_sum[kQueryTile], rescale[kQueryTile];
    std::fill_n(row_max, rows_, -std::numeric_limits<Real>::infinity());
    std::fill_n(row_sum, rows_, Real(0));
    load_head(c_.qkv.data() + (b_ * c_.count() + begin_) * c_.shape.qkv_width() + head_ * hd_, c_.shape.qkv_width(), rows_, hd_,
              static_cast<Real>(c_.shape.score_scale()), c_.rope, begin_, q, width_);
    const int64_t keys_seen = c_.first + begin_ + rows_;
    for (int64_t key0 = 0; key0 < keys_seen; key0 += kKeyTile) {
      const ScoreTile tile{scores, kKeyTile, rows_, std::min(kKeyTile, keys_seen - key0), c_.first + begin_ - key0};
      visible_scores({q, width_}, hd_, kv.key_panels + key0 * hd_, tile);
      softmax_tile(tile, row_max, row_sum, rescale);
      if (c_.dropout.p > 0) drop(tile, key0, scores + rows_ * kKeyTile);
      if (key0 > 0) scale_rows(sum, rows_, width_, rescale);
      visible_product(tile, {kv.values + key0 * width_, width_}, width_, sum, width_, key0 > 0);
    }
    store(sum, row_max, row_sum);
  }

 private:
  void drop(const ScoreTile& tile, int64_t key0, Real* factors) const {
    dropout_tile(c_.dropout, c_.count(), first_row(), key0, tile, factors);
    multiply_visible(tile, factors, tile.data);
  }

  void store(Real* sum, const Real* row_max, Real* row_sum) const {
    for (int64_t r = 0; r < rows_; ++r) {
      if (c_.log_sum != nullptr) c_.log_sum[first_row() + r] = row_max[r] + std::log(row_sum[r]);
      row_sum[r] = 1 / row_sum[r];
    }
    scale_rows(sum, rows_, width_, row_sum);
    copy_rows(sum, width_, rows_, hd_, 1, c_.out + (b_ * c_.count() + begin_) * c_.shape.out_width() + head_ * hd_,
              c_.shape.out_width());
  }

  int64_t first_row() const { return (b_ * c_.shape.heads + head_) * c_.count() + begin_; }  // of (B,H,t)

  const Call& c_;
  int64_t b_, head_, begin_, rows_, hd_, width_;
};

// Many heads: a piece is some key/value heads of a sequence, one after the other with all that reads them; keys and values stay in
// the cache of one core.
void forward_by_group(const Call& call) {
  const AttentionShape& s = call.shape;
  const int64_t hd = s.head_dim, positions = (call.count() + KvCache::kPanel - 1) / KvCache::kPanel * KvCache::kPanel;
  const auto one_group = [&](int64_t index, const KeyValueHead<Real>& kv, Real* memory) {
    const int64_t b = index / s.kv_heads, kv_head = index % s.kv_heads;
    for (int64_t t = 0; t < call.count(); t += KvCache::kPanel) {
      const Real* k = call.qkv.data() + (b * call.count() + t) * s.qkv_width() + (s.heads + kv_head) * hd;
      store_keys_values(k, k + s.kv_heads * hd, s.qkv_width(), std::min(KvCache::kPanel, call.count() - t), hd, call.rope, t, t,
                        kv);
    }
    for (int64_t g = 0; g < s.queries_per_kv(); ++g)
      for (int64_t tile = 0; tile < call.tiles(); ++tile)
        QueryTileForward(call, b, kv_head * s.queries_per_kv() + g, tile).run({kv.key_panels, kv.values}, memory);
  };
  const int64_t groups = call.batch() * s.kv_heads;
  parallel_ranges(groups, head_groups_a_piece(groups), [&](int64_t begin, int64_t end) {
    Tensor panels({positions, hd}), values({positions, round_up_to_lanes(hd)}), memory({QueryTileForward::elements(call)});
    for (int64_t i = begin; i < end; ++i) one_group(i, {panels.data(), values.data()}, memory.data());
  });
}

// Few heads: a piece is a tile of queries. The last tile of a sequence sees most keys and takes longest, so these go first: short
// pieces fill the end.
void forward_by_tile(const Call& call, const KvCache& cache) {
  const int64_t heads = call.shape.heads, sequences = call.batch() * heads;
  parallel_pieces(sequences * call.tiles(), [&](int64_t piece) {
    const int64_t b = piece % sequences / heads, head = piece % heads, kv_head = head / call.shape.queries_per_kv();
    Tensor memory({QueryTileForward::elements(call)});
    QueryTileForward(call, b, head, call.tiles() - 1 - piece / sequences)
        .run({cache.key_panels(b, kv_head), cache.values(b, kv_head)}, memory.data());
  });
}

}  // namespace

Tensor attention_forward(const Tensor& qkv, const AttentionShape& shape, const RopeTable* rope, const AttentionDropout& dropout,
                         Tensor* log_sum) {
  const int64_t batch = qkv.shape()[0], count = qkv.shape()[1];
  Tensor out({batch, count, shape.out_width()});
  if (log_sum != nullptr) *log_sum = Tensor({batch, shape.heads, count});
  const Call call{qkv, shape, rope, dropout, 0, out.data(), log_sum != nullptr ? log_sum->data() : nullptr};
  if (batch * shape.kv_heads >= kManyHeadGroups) {
    forward_by_group(call);
  } else {
    KvCache cache(batch, shape, count);
    cache.append(qkv, rope);
    forward_by_tile(call, cache);
  }
  return out;
}

Tensor attention_with_cache(const Tensor& qkv, KvCache& cache, const AttentionShape& shape, const RopeTable* rope) {
  Tensor out({qkv.shape()[0], qkv.shape()[1], shape.out_width()});
  const int64_t first = cache.length();
  const AttentionDropout none;
  cache.append(qkv, rope);
  forward_by_tile({qkv, shape, rope, none, first, out.data(), nullptr}, cache);
  return out;
}

}  // namespace rowan
