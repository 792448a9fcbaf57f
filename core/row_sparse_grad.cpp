#include "core/row_sparse_grad.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "core/kernels/vectorize.h"
#include "core/parallel.h"

namespace rowan {
namespace {

constexpr int kMostDigitBits = 11;  // a pass's counters then fit the first cache level

// An id and its place in the input, in one word that sorts by id.
using Key = uint64_t;
uint32_t id_of(Key k) {
  return static_cast<uint32_t>(k >> 32);
}

// Stable counting passes from the lowest digit up. As many as the largest id needs, of equal width.
void radix_sort(std::vector<Key>& keys, uint32_t highest) {
  const int bits = std::max(1, static_cast<int>(std::bit_width(highest)));
  const int passes = (bits + kMostDigitBits - 1) / kMostDigitBits, digit_bits = (bits + passes - 1) / passes;
  const uint32_t mask = (uint32_t{1} << digit_bits) - 1;
  std::vector<Key> other(keys.size());
  std::vector<uint32_t> start;
  for (int pass = 0; pass < passes; ++pass) {
    const int shift = pass * digit_bits;
    const auto digit = [&](Key k) { return (id_of(k) >> shift) & mask; };
    start.assign(size_t{mask} + 2, 0);
    for (Key k : keys) ++start[digit(k) + 1];
    std::partial_sum(start.begin(), start.end(), start.begin());
    for (Key k : keys) other[start[digit(k)]++] = k;
    keys.swap(other);
  }
}

ROWAN_VECTORIZED void add_to_row(const Real* __restrict x, int64_t n, Real* __restrict out) {
  for (int64_t j = 0; j < n; ++j) out[j] += x[j];
}

}  // namespace

SortedIds sort_ids(std::span<const int32_t> ids) {
  std::vector<Key> keys(ids.size());
  uint32_t highest = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto id = static_cast<uint32_t>(ids[i]);
    highest = std::max(highest, id);
    keys[i] = Key{id} << 32 | i;
  }
  radix_sort(keys, highest);
  SortedIds s;
  s.order.resize(keys.size());
  s.unique.reserve(keys.size());
  s.begin.reserve(keys.size() + 1);
  for (size_t k = 0; k < keys.size(); ++k) {
    s.order[k] = static_cast<int32_t>(keys[k] & 0xffffffffu);
    if (k > 0 && id_of(keys[k]) == id_of(keys[k - 1])) continue;
    s.unique.push_back(static_cast<int32_t>(id_of(keys[k])));
    s.begin.push_back(static_cast<int32_t>(k));
  }
  s.begin.push_back(static_cast<int32_t>(ids.size()));
  return s;
}

void sum_run(const Occurrences& o, int64_t k, int64_t from, int64_t to, Real* out) {
  const auto first = static_cast<size_t>(o.sorted.begin[static_cast<size_t>(k)]);
  const auto last = static_cast<size_t>(o.sorted.begin[static_cast<size_t>(k) + 1]);
  const auto row = [&](size_t i) { return o.rows[static_cast<size_t>(o.sorted.order[i])]; };
  std::copy(row(first) + from, row(first) + to, out + from);
  for (size_t i = first + 1; i < last; ++i) add_to_row(row(i) + from, to - from, out + from);
}

void RowSparseGrad::append(const Ids& ids, const Tensor& dy) {
  ROWAN_CHECK(dy.size() == ids.size() * width_, "[row_sparse_grad] ", ids.size(), " ids of width ", width_, " but dy is ",
              dy.shape());
  check_ids(ids, rows_, "row_sparse_grad");
  pending_.push_back({ids, dy.reshape({ids.size(), width_})});
  sorted_ = false;
}

void RowSparseGrad::coalesce() {
  if (pending_.empty()) return;
  // What was coalesced before counts as the oldest chunk; its counts are carried along.
  std::vector<int32_t> weight;
  Occurrences joined;
  if (!sums_.empty()) {
    joined = all_occurrences();
    weight = counts_;
    weight.resize(joined.rows.size(), 1);
  }
  const Occurrences& o = sums_.empty() ? occurrences() : joined;
  const int64_t unique = o.unique();
  Tensor sums({unique, width_});
  std::vector<int32_t> counts(o.sorted.unique.size(), 0);
  std::vector<int64_t> long_runs;
  for (int64_t k = 0; k < unique; ++k) {
    const auto first = static_cast<size_t>(o.sorted.begin[static_cast<size_t>(k)]);
    int32_t& count = counts[static_cast<size_t>(k)] = static_cast<int32_t>(weight.empty() ? o.run_length(k) : 0);
    for (size_t i = first; !weight.empty() && i < first + static_cast<size_t>(o.run_length(k)); ++i)
      count += weight[static_cast<size_t>(o.sorted.order[i])];
    if (o.run_length(k) >= kLongRun) long_runs.push_back(k);
  }
  const int64_t rows_a_piece = std::clamp<int64_t>(16384 / std::max<int64_t>(1, width_), 1, 256);
  parallel_ranges(unique, rows_a_piece, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k)
      if (o.run_length(k) < kLongRun) sum_run(o, k, 0, width_, sums.data() + k * width_);
  });
  for (int64_t k : long_runs)
    parallel_ranges(width_, kLongRunColumns, [&](int64_t from, int64_t to) { sum_run(o, k, from, to, sums.data() + k * width_); });

  ids_ = o.sorted.unique;
  counts_ = std::move(counts);
  sums_ = std::move(sums);
  if (keep_) kept_.insert(kept_.end(), pending_.begin(), pending_.end());
  pending_.clear();
}

// What was coalesced before, if anything, and then the chunks that came after.
Occurrences RowSparseGrad::all_occurrences() const {
  Occurrences o;
  std::vector<int32_t> ids;
  const auto take = [&](std::span<const int32_t> chunk_ids, const Tensor& rows) {
    ids.insert(ids.end(), chunk_ids.begin(), chunk_ids.end());
    for (size_t i = 0; i < chunk_ids.size(); ++i) o.rows.push_back(rows.data() + static_cast<int64_t>(i) * width_);
  };
  if (!sums_.empty()) take(ids_, sums_);
  for (const Chunk& c : pending_) take(c.ids.values(), c.dy);
  o.sorted = sort_ids(ids);
  return o;
}

const Occurrences& RowSparseGrad::occurrences() {
  ROWAN_ASSERT(has_occurrences());
  if (sorted_) return occurrences_;
  std::vector<int32_t> ids;
  occurrences_.rows.clear();
  for (const std::vector<Chunk>* chunks : {&kept_, &pending_})
    for (const Chunk& c : *chunks) {
      ids.insert(ids.end(), c.ids.values().begin(), c.ids.values().end());
      for (int64_t i = 0; i < c.ids.size(); ++i) occurrences_.rows.push_back(c.dy.data() + i * width_);
    }
  occurrences_.sorted = sort_ids(ids);
  sorted_ = true;
  return occurrences_;
}

void RowSparseGrad::clear() {
  kept_.clear();
  pending_.clear();
  ids_.clear();
  counts_.clear();
  sums_ = Tensor();
  sorted_ = false;
}

const std::vector<int32_t>& RowSparseGrad::ids() const {
  ROWAN_ASSERT(coalesced());
  return ids_;
}
const std::vector<int32_t>& RowSparseGrad::counts() const {
  ROWAN_ASSERT(coalesced());
  return counts_;
}
std::span<Real> RowSparseGrad::row(int64_t k) {
  ROWAN_ASSERT(coalesced());
  return sums_.row(k);
}
std::span<const Real> RowSparseGrad::row(int64_t k) const {
  ROWAN_ASSERT(coalesced());
  return sums_.row(k);
}

void RowSparseGrad::scale(Real factor) {
  ROWAN_ASSERT(coalesced());
  Real* x = sums_.data();
  parallel_ranges(sums_.size(), 1 << 15, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) x[i] *= factor;
  });
}

void RowSparseGrad::add_to(Tensor& dense) const {
  ROWAN_ASSERT(coalesced());
  ROWAN_CHECK(dense.shape() == (Shape{rows_, width_}), "[row_sparse_grad] add to a tensor of shape ", dense.shape());
  constexpr int64_t kRowsAPiece = 64;  // ids are unique: no two pieces meet
  parallel_ranges(static_cast<int64_t>(ids_.size()), kRowsAPiece, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      Real* out = dense.data() + ids_[static_cast<size_t>(k)] * width_;
      const Real* in = sums_.data() + k * width_;
      for (int64_t j = 0; j < width_; ++j) out[j] += in[j];
    }
  });
}

}  // namespace rowan
