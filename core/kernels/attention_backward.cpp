// For a row i with dy_i the gradient of its output, and p~_ij = p_ij m_ij the probabilities after dropout:
//   dv_j += sum_i p~_ij dy_i          dp_ij = m_ij dy_i . v_j          delta_i = sum_j p_ij dp_ij = dy_i . y_i
//   ds_ij = p_ij (dp_ij - delta_i)    dq_i = scale sum_j ds_ij k_j     dk_j = scale sum_i ds_ij q_i
#include <algorithm>
#include <utility>
#include <vector>

#include "core/kernels/attention_tiles.h"
#include "core/kernels/reduce.h"
#include "core/parallel.h"

namespace rowan {
namespace {

constexpr int64_t kTile = KvCache::kPanel;  // queries and keys of a tile

struct Call {
  const AttentionSaved& saved;
  const Tensor& dy;
  const AttentionShape& shape;
  const RopeTable* rope;
  const AttentionDropout& dropout;
  Tensor& dqkv;
  bool add;

  int64_t batch() const { return dy.shape()[0]; }
  int64_t positions() const { return dy.shape()[1]; }
  int64_t tiles() const { return (positions() + kTile - 1) / kTile; }
};

// One key/value head of one sequence, with the query heads that read it. Its three steps, over tiles, are prepare(), then
// accumulate() in rising order of `offset`, then finish(); calls of one step touch nothing in common. select() says which head it
// is: one object, whose memory is then in a core's cache, serves several heads one after the other.
class HeadGroupBackward {
 public:
  explicit HeadGroupBackward(const Call& call)
      : c_(call),
        queries_(call.shape.queries_per_kv()),
        hd_(call.shape.head_dim),
        width_(round_up_to_lanes(hd_)),
        rows_(call.tiles() * kTile),
        memory_({attention_backward_elements(call.shape, call.positions())}) {
    Real* next = memory_.data();
    for (Real** part : {&q_, &dy_, &dq_}) *part = std::exchange(next, next + queries_ * rows_ * width_);
    for (Real** part : {&k_, &dk_, &dv_}) *part = std::exchange(next, next + rows_ * width_);
    for (Real** part : {&key_panels_, &value_panels_}) *part = std::exchange(next, next + rows_ * hd_);
    delta_ = next;
    ROWAN_ASSERT(delta_ + queries_ * rows_ == memory_.data() + memory_.size());
  }

  void select(int64_t index) {
    b_ = index / c_.shape.kv_heads;
    kv_head_ = index % c_.shape.kv_heads;
  }
  // Elements that accumulate() works in.
  int64_t score_elements() const { return (c_.dropout.p > 0 ? 4 : 2) * kTile * kTile; }

  // Lays out one tile of positions.
  void prepare(int64_t tile) {
    const int64_t begin = tile * kTile, rows = rows_of(tile), ld = c_.shape.qkv_width(), ldy = c_.shape.out_width();
    for (int64_t g = 0; g < queries_; ++g) {
      load_head(query_in(c_.saved.qkv.data(), g, begin), ld, rows, hd_, scale(), c_.rope, begin, at(q_, g, begin), width_);
      const int64_t from = (b_ * c_.positions() + begin) * ldy + head(g) * hd_;
      load_head(c_.dy.data() + from, ldy, rows, hd_, 1, nullptr, 0, at(dy_, g, begin), width_);
      dot_rows(c_.dy.data() + from, ldy, c_.saved.out.data() + from, ldy, rows, hd_, delta_ + g * rows_ + begin);
    }
    Real* k = at(k_, 0, begin);
    load_head(key_in(c_.saved.qkv.data(), begin), ld, rows, hd_, 1, c_.rope, begin, k, width_);
    transpose(k, width_, rows, hd_, key_panels_ + begin * hd_, kTile);
    transpose(value_in(c_.saved.qkv.data(), begin), ld, rows, hd_, value_panels_ + begin * hd_, kTile);
  }

  // The part of the gradients that comes from queries in tile `key_tile + offset` looking at keys in tile `key_tile`.
  void accumulate(int64_t key_tile, int64_t offset, Real* scores) {
    const bool dropped = c_.dropout.p > 0;
    const int64_t query_tile = key_tile + offset, rows = rows_of(query_tile), keys = rows_of(key_tile);
    const ScoreTile p{scores, kTile, rows, keys, offset * kTile}, ds{p.data + kTile * kTile, kTile, rows, keys, p.diagonal};
    const ScoreTile kept{dropped ? ds.data + kTile * kTile : p.data, kTile, rows, keys, p.diagonal};  // p after dropout
    const int64_t key0 = key_tile * kTile, query0 = query_tile * kTile;
    Real *dk = at(dk_, 0, key0), *dv = at(dv_, 0, key0);
    for (int64_t g = 0; g < queries_; ++g) {
      const TileOperand q{at(q_, g, query0), width_}, dy{at(dy_, g, query0), width_}, k{at(k_, 0, key0), width_};
      const bool more_keys = offset > 0, more_queries = more_keys || g > 0;  // something was stored before
      visible_scores(q, hd_, key_panels_ + key0 * hd_, p);
      probabilities_tile(p, c_.saved.log_sum.data() + (b_ * c_.shape.heads + head(g)) * c_.positions() + query0);
      visible_scores(dy, hd_, value_panels_ + key0 * hd_, ds);
      if (dropped) drop(g, query0, key0, p, ds, kept, kept.data + kTile * kTile);
      visible_product_transposed(kept, dy, width_, dv, width_, more_queries);
      softmax_backward_tile(p, ds.data, delta_ + g * rows_ + query0);
      visible_product_transposed(ds, q, width_, dk, width_, more_queries);
      visible_product(ds, k, width_, at(dq_, g, query0), width_, more_keys);
    }
  }

  // Turns the sums of one tile of positions into gradients and hands them over.
  void finish(int64_t tile) {
    const int64_t begin = tile * kTile, rows = rows_of(tile);
    for (int64_t g = 0; g < queries_; ++g)
      store(at(dq_, g, begin), begin, rows, scale(), c_.rope, query_in(c_.dqkv.data(), g, begin));
    store(at(dk_, 0, begin), begin, rows, 1, c_.rope, key_in(c_.dqkv.data(), begin));
    store(at(dv_, 0, begin), begin, rows, 1, nullptr, value_in(c_.dqkv.data(), begin));
  }

 private:
  int64_t rows_of(int64_t tile) const { return std::min(kTile, c_.positions() - tile * kTile); }
  int64_t head(int64_t g) const { return kv_head_ * queries_ + g; }
  Real* at(Real* part, int64_t g, int64_t row) const { return part + (g * rows_ + row) * width_; }

  // A head's place in a (B,T,(H+2K)*hd) array.
  template <class T>
  T* row_in(T* qkv, int64_t row, int64_t head_of_row) const {
    return qkv + (b_ * c_.positions() + row) * c_.shape.qkv_width() + head_of_row * hd_;
  }
  template <class T>
  T* query_in(T* qkv, int64_t g, int64_t row) const {
    return row_in(qkv, row, head(g));
  }
  template <class T>
  T* key_in(T* qkv, int64_t row) const {
    return row_in(qkv, row, c_.shape.heads + kv_head_);
  }
  template <class T>
  T* value_in(T* qkv, int64_t row) const {
    return row_in(qkv, row, c_.shape.heads + c_.shape.kv_heads + kv_head_);
  }

  Real scale() const { return static_cast<Real>(c_.shape.score_scale()); }

  void drop(int64_t g, int64_t query0, int64_t key0, const ScoreTile& p, const ScoreTile& dp, const ScoreTile& kept,
            Real* factors) const {
    dropout_tile(c_.dropout, c_.positions(), (b_ * c_.shape.heads + head(g)) * c_.positions() + query0, key0, p, factors);
    multiply_visible(p, factors, kept.data);
    multiply_visible(dp, factors, dp.data);
  }

  // Rotates `rows` positions from `begin` on back, in place, and hands them over times `factor`.
  void store(Real* sums, int64_t begin, int64_t rows, Real factor, const RopeTable* rope, Real* out) const {
    if (rope != nullptr) rotate_positions_back(sums, rows, width_, *rope, begin);
    (c_.add ? add_rows : copy_rows)(sums, width_, rows, hd_, factor, out, c_.shape.qkv_width());
  }

  const Call& c_;
  int64_t b_ = 0, kv_head_ = 0;
  int64_t queries_, hd_, width_, rows_;
  Tensor memory_;                     // of all that follow
  Real *q_, *dy_;                     // (H/K, rows, width): rotated and scaled queries; dy
  Real* dq_;                          // (H/K, rows, width), of the scaled and rotated queries
  Real* k_;                           // (rows, width), rotated
  Real *dk_, *dv_;                    // (rows, width)
  Real *key_panels_, *value_panels_;  // as in KvCache
  Real* delta_;                       // (H/K, rows)
};

// Many heads: a piece is some head groups, whose buffers stay in the cache of one core. Key tiles go backwards so that a query tile
// meets them from the diagonal on, as in backward_by_tile.
void backward_by_group(const Call& call) {
  const int64_t groups = call.batch() * call.shape.kv_heads;
  parallel_ranges(groups, head_groups_a_piece(groups), [&](int64_t begin, int64_t end) {
    HeadGroupBackward group(call);
    Tensor scores({group.score_elements()});
    for (int64_t i = begin; i < end; ++i) {
      group.select(i);
      for (int64_t tile = 0; tile < call.tiles(); ++tile) group.prepare(tile);
      for (int64_t tile = call.tiles() - 1; tile >= 0; --tile)
        for (int64_t offset = 0; tile + offset < call.tiles(); ++offset) group.accumulate(tile, offset, scores.data());
      for (int64_t tile = 0; tile < call.tiles(); ++tile) group.finish(tile);
    }
  });
}

// Few heads: a piece is a pair of tiles. Pairs of equal distance from the diagonal have neither keys nor queries in common, so
// they run side by side, and the order of additions is that of backward_by_group.
void backward_by_tile(const Call& call) {
  const int64_t groups = call.batch() * call.shape.kv_heads;
  std::vector<HeadGroupBackward> group;
  group.reserve(static_cast<size_t>(groups));
  for (int64_t i = 0; i < groups; ++i) group.emplace_back(call).select(i);
  const auto of_piece = [&](int64_t piece) -> HeadGroupBackward& { return group[static_cast<size_t>(piece % groups)]; };
  parallel_pieces(groups * call.tiles(), [&](int64_t piece) { of_piece(piece).prepare(piece / groups); });
  for (int64_t offset = 0; offset < call.tiles(); ++offset)
    parallel_pieces(groups * (call.tiles() - offset), [&](int64_t piece) {
      Tensor scores({of_piece(piece).score_elements()});
      of_piece(piece).accumulate(piece / groups, offset, scores.data());
    });
  parallel_pieces(groups * call.tiles(), [&](int64_t piece) { of_piece(piece).finish(piece / groups); });
}

}  // namespace

int64_t attention_backward_elements(const AttentionShape& shape, int64_t positions) {
  const int64_t rows = (positions + kTile - 1) / kTile * kTile, queries = shape.queries_per_kv();
  const int64_t width = round_up_to_lanes(shape.head_dim);
  return rows * (3 * queries * width + 3 * width + 2 * shape.head_dim + queries);
}

void attention_backward(const AttentionSaved& saved, const Tensor& dy, const AttentionShape& shape, const RopeTable* rope,
                        const AttentionDropout& dropout, Tensor& dqkv, bool add) {
  const Call call{saved, dy, shape, rope, dropout, dqkv, add};
  if (call.tiles() == 1 || call.batch() * shape.kv_heads >= kManyHeadGroups)
    backward_by_group(call);
  else
    backward_by_tile(call);
}

}  // namespace rowan
