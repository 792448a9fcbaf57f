#include "core/row_sparse_grad.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "core/kernels/prefetch.h"
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
  const size_t digits = size_t{mask} + 1;
  const auto digit = [&](Key k, int pass) { return (id_of(k) >> pass * digit_bits) & mask; };
  std::vector<uint32_t> start(digits * static_cast<size_t>(passes), 0);  // (passes, digits)
  for (Key k : keys)
    for (int pass = 0; pass < passes; ++pass) ++start[digits * static_cast<size_t>(pass) + digit(k, pass)];
  std::vector<Key> other(keys.size());
  for (int pass = 0; pass < passes; ++pass) {
    uint32_t* const at = start.data() + digits * static_cast<size_t>(pass);
    std::exclusive_scan(at, at + digits, at, uint32_t{0});
    for (Key k : keys) other[at[digit(k, pass)]++] = k;
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
  s.unique.resize(keys.size());
  s.begin.resize(keys.size() + 1, 0);
  size_t unique = 0;
  uint32_t last = UINT32_MAX;                 // no id: they are below 2^31
  for (size_t k = 0; k < keys.size(); ++k) {  // without a branch, which text would make the processor guess wrong half the time
    const uint32_t id = id_of(keys[k]);
    unique += id != last ? 1 : 0;
    last = id;
    s.order[k] = static_cast<int32_t>(keys[k] & 0xffffffffu);
    s.unique[unique - 1] = static_cast<int32_t>(id);
    s.begin[unique] = static_cast<int32_t>(k + 1);
  }
  s.unique.resize(unique);
  s.begin.resize(unique + 1);
  return s;
}

void sum_run(const Occurrences& o, int64_t k, int64_t from, int64_t to, Real* out) {
  const auto first = static_cast<size_t>(o.sorted.begin[static_cast<size_t>(k)]);
  const auto last = static_cast<size_t>(o.sorted.begin[static_cast<size_t>(k) + 1]);
  const auto row = [&](size_t i) { return o.rows[static_cast<size_t>(o.sorted.order[i])]; };
  // What comes next: of this id, or of the one after it, whose sum is asked for next.
  const auto ahead = static_cast<size_t>(prefetch_distance<Real>(to - from));
  for (size_t i = first; i < last; ++i) {
    if (i + ahead < o.sorted.order.size()) prefetch_row(row(i + ahead) + from, to - from);
    if (i == first) {
      std::copy(row(i) + from, row(i) + to, out + from);
    } else {
      add_to_row(row(i) + from, to - from, out + from);
    }
  }
}

void RowSparseGrad::append(const Ids& ids, const Tensor& dy, std::shared_ptr<const SortedIds> sorted) {
  ROWAN_CHECK(dy.size() == ids.size() * width_, "[row_sparse_grad] ", ids.size(), " ids of width ", width_, " but dy is ",
              dy.shape());
  check_ids(ids, rows_, "row_sparse_grad");
  pending_.push_back({ids, dy.reshape({ids.size(), width_}), std::move(sorted)});
  sorted_ = false;
}

void RowSparseGrad::coalesce() {
  if (pending_.empty()) return;
  // What was coalesced before counts as the oldest chunk; its counts are carried along.
  std::vector<int32_t> weight;
  Occurrences joined;
  if (!sums_.empty()) {
    const Chunk before{Ids({std::ssize(ids_)}, ids_), sums_, nullptr};
    std::vector<const Chunk*> chunks{&before};
    for (const Chunk& c : pending_) chunks.push_back(&c);
    joined = join(chunks);
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
  parallel_ranges(unique, rows_a_piece(width_), [&](int64_t begin, int64_t end) {
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

// Chunk after chunk. A single one may have been sorted by whoever looked its rows up.
Occurrences RowSparseGrad::join(std::span<const Chunk* const> chunks) const {
  Occurrences o;
  size_t count = 0;
  for (const Chunk* c : chunks) count += static_cast<size_t>(c->ids.size());
  o.rows.reserve(count);
  for (const Chunk* c : chunks)
    for (int64_t i = 0; i < c->ids.size(); ++i) o.rows.push_back(c->dy.data() + i * width_);
  if (chunks.size() == 1 && chunks[0]->sorted) {
    o.sorted = *chunks[0]->sorted;
    return o;
  }
  std::vector<int32_t> ids;
  ids.reserve(count);
  for (const Chunk* c : chunks) ids.insert(ids.end(), c->ids.values().begin(), c->ids.values().end());
  o.sorted = sort_ids(ids);
  return o;
}

const Occurrences& RowSparseGrad::occurrences() {
  ROWAN_ASSERT(has_occurrences());
  if (sorted_) return occurrences_;
  std::vector<const Chunk*> chunks;
  for (const std::vector<Chunk>* list : {&kept_, &pending_})
    for (const Chunk& c : *list) chunks.push_back(&c);
  occurrences_ = join(chunks);
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
