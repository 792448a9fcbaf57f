#include "core/row_sparse_grad.h"

#include <algorithm>
#include <numeric>

#include "core/parallel.h"

namespace rowan {
namespace {

constexpr int kDigitBits = 11;
constexpr size_t kDigits = size_t{1} << kDigitBits;

// One stable counting pass over the digit at `shift`.
void counting_pass(std::span<const int32_t> ids, int shift, const std::vector<int32_t>& from, std::vector<int32_t>& to) {
  std::vector<int32_t> start(kDigits + 1, 0);
  const auto digit = [&](int32_t place) {
    return (static_cast<uint32_t>(ids[static_cast<size_t>(place)]) >> shift) & (kDigits - 1);
  };
  for (int32_t place : from) ++start[digit(place) + 1];
  std::partial_sum(start.begin(), start.end(), start.begin());
  for (int32_t place : from) to[static_cast<size_t>(start[digit(place)]++)] = place;
}

}  // namespace

SortedIds sort_ids(std::span<const int32_t> ids) {
  SortedIds s;
  s.order.resize(ids.size());
  std::iota(s.order.begin(), s.order.end(), 0);
  const int32_t highest = ids.empty() ? 0 : *std::max_element(ids.begin(), ids.end());
  std::vector<int32_t> other(ids.size());
  for (int shift = 0; shift < 31 && (highest >> shift) != 0; shift += kDigitBits) {
    counting_pass(ids, shift, s.order, other);
    s.order.swap(other);
  }
  for (size_t k = 0; k < s.order.size(); ++k) {
    const int32_t id = ids[static_cast<size_t>(s.order[k])];
    if (s.unique.empty() || s.unique.back() != id) {
      s.unique.push_back(id);
      s.begin.push_back(static_cast<int32_t>(k));
    }
  }
  s.begin.push_back(static_cast<int32_t>(ids.size()));
  return s;
}

void RowSparseGrad::append(const Ids& ids, const Tensor& dy) {
  ROWAN_CHECK(dy.size() == ids.size() * width_, "[row_sparse_grad] ", ids.size(), " ids of width ", width_, " but dy is ",
              dy.shape());
  check_ids(ids, rows_, "row_sparse_grad");
  pending_.push_back({ids, dy.reshape({ids.size(), width_})});
}

void RowSparseGrad::coalesce() {
  if (pending_.empty()) return;
  // What was coalesced before counts as the oldest chunk; its counts are carried along.
  std::vector<int32_t> ids, weight;
  std::vector<const Real*> source;
  const auto take = [&](std::span<const int32_t> chunk_ids, const Tensor& rows) {
    for (size_t i = 0; i < chunk_ids.size(); ++i) {
      ids.push_back(chunk_ids[i]);
      source.push_back(rows.data() + static_cast<int64_t>(i) * width_);
    }
  };
  if (!sums_.empty()) take(ids_, sums_);
  weight = counts_;
  for (const Chunk& c : pending_) take(c.ids.values(), c.dy);
  weight.resize(ids.size(), 1);

  SortedIds sorted = sort_ids(ids);
  const int64_t unique = static_cast<int64_t>(sorted.unique.size());
  Tensor sums({unique, width_});
  std::vector<int32_t> counts(sorted.unique.size(), 0);
  // Short runs: a piece is a few rows. A long run (a frequent token) is split by columns, never by tokens: the order of the
  // additions to one element is that of the tokens.
  constexpr int64_t kRowsAPiece = 16, kColumnsAPiece = 64, kLongRun = 256;
  const auto add_run = [&](int64_t k, int64_t from, int64_t to) {
    Real* out = sums.data() + k * width_;
    const auto first = static_cast<size_t>(sorted.begin[static_cast<size_t>(k)]);
    const auto last = static_cast<size_t>(sorted.begin[static_cast<size_t>(k) + 1]);
    std::copy(source[static_cast<size_t>(sorted.order[first])] + from, source[static_cast<size_t>(sorted.order[first])] + to,
              out + from);
    for (size_t o = first + 1; o < last; ++o) {
      const Real* row = source[static_cast<size_t>(sorted.order[o])];
      for (int64_t j = from; j < to; ++j) out[j] += row[j];
    }
  };
  const auto run_length = [&](int64_t k) {
    return sorted.begin[static_cast<size_t>(k) + 1] - sorted.begin[static_cast<size_t>(k)];
  };
  std::vector<int64_t> long_runs;
  for (int64_t k = 0; k < unique; ++k) {
    const auto begin = static_cast<size_t>(sorted.begin[static_cast<size_t>(k)]);
    for (size_t o = begin; o < begin + static_cast<size_t>(run_length(k)); ++o)
      counts[static_cast<size_t>(k)] += weight[static_cast<size_t>(sorted.order[o])];
    if (run_length(k) >= kLongRun) long_runs.push_back(k);
  }
  parallel_ranges(unique, kRowsAPiece, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k)
      if (run_length(k) < kLongRun) add_run(k, 0, width_);
  });
  for (int64_t k : long_runs) parallel_ranges(width_, kColumnsAPiece, [&](int64_t from, int64_t to) { add_run(k, from, to); });

  ids_ = std::move(sorted.unique);
  counts_ = std::move(counts);
  sums_ = std::move(sums);
  if (keep_) kept_.insert(kept_.end(), pending_.begin(), pending_.end());
  pending_.clear();
}

Occurrences RowSparseGrad::occurrences() const {
  ROWAN_ASSERT(has_occurrences());
  Occurrences o;
  std::vector<int32_t> ids;
  for (const std::vector<Chunk>* chunks : {&kept_, &pending_})
    for (const Chunk& c : *chunks)
      for (int64_t i = 0; i < c.ids.size(); ++i) {
        ids.push_back(c.ids[i]);
        o.rows.push_back(c.dy.data() + i * width_);
      }
  o.sorted = sort_ids(ids);
  return o;
}

void RowSparseGrad::clear() {
  kept_.clear();
  pending_.clear();
  ids_.clear();
  counts_.clear();
  sums_ = Tensor();
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
  return sums_.row(k);
}
std::span<const Real> RowSparseGrad::row(int64_t k) const {
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
