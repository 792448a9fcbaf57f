// RowSparseGrad: the gradient of a (V,D) table that was read by rows. Memory is O(rows read * D), never O(V*D).
//
// append() keeps handles to what it is given. coalesce() brings it to one row per id: ids strictly increasing, repeated ids
// summed in token order, so that the result is the same for any number of threads. Finding equal ids is a stable radix sort
// over the ids: O(N) in the tokens read, whatever V is, and no hashing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/ids.h"
#include "core/tensor.h"

namespace rowan {

// Occurrences sorted by id, equal ids in order of appearance. order[k] is the place of the k-th occurrence in the input.
struct SortedIds {
  std::vector<int32_t> order;   // (n)
  std::vector<int32_t> unique;  // (U), strictly increasing
  std::vector<int32_t> begin;   // (U+1), the run of unique[k] is order[begin[k]..begin[k+1])
};
SortedIds sort_ids(std::span<const int32_t> ids);

// What one thread takes of a table, in elements: tens of microseconds, against which handing it over costs nothing.
inline constexpr int64_t kRowPieceElements = 16384;

// How many sorted rows one thread takes at a time, in every loop over the rows of a batch. All cut alike, so that the core that
// looked a row up is the one that updates it: where cores share no cache, taking back a row that the other one has read costs more
// than the update. Narrow rows lie anywhere in memory as well, and waiting for them is what takes the time.
inline int64_t rows_a_piece(int64_t width) {
  return std::clamp<int64_t>(kRowPieceElements / std::max<int64_t>(1, width), 1, 128);
}

// The gradients of single occurrences of ids. The rows belong to the RowSparseGrad.
struct Occurrences {
  SortedIds sorted;
  std::vector<const Real*> rows;  // (n), in order of appearance, each of width D

  int64_t count() const { return static_cast<int64_t>(rows.size()); }            // n
  int64_t unique() const { return static_cast<int64_t>(sorted.unique.size()); }  // U
  int64_t run_length(int64_t k) const { return sorted.begin[static_cast<size_t>(k) + 1] - sorted.begin[static_cast<size_t>(k)]; }
};
// out[from..to) = the columns [from, to) of the gradient of sorted.unique[k], its occurrences added in token order.
void sum_run(const Occurrences& o, int64_t k, int64_t from, int64_t to, Real* out);
// A run as long as this is worth splitting among threads: by columns, never by tokens, so that the order of additions stays.
inline constexpr int64_t kLongRun = 256;
inline constexpr int64_t kLongRunColumns = 64;  // that one thread takes

class RowSparseGrad {
 public:
  RowSparseGrad() = default;
  RowSparseGrad(int64_t rows, int64_t width) : rows_(rows), width_(width) {}

  int64_t table_rows() const { return rows_; }  // V
  int64_t width() const { return width_; }      // D
  bool empty() const { return pending_.empty() && sums_.empty(); }

  // ids of n elements in [0,V); dy of n rows of width D; ids may repeat. sorted: sort_ids(ids), from a caller that has it already.
  void append(const Ids& ids, const Tensor& dy, std::shared_ptr<const SortedIds> sorted = nullptr);
  void coalesce();
  bool coalesced() const { return pending_.empty(); }
  void clear();

  // Single occurrences, for optimizers that apply repeated ids one by one or sum them while they update. coalesce() drops them
  // unless it was told to keep them.
  void keep_occurrences(bool keep) { keep_ = keep; }
  bool has_occurrences() const { return !pending_.empty() ? sums_.empty() || keep_ : !kept_.empty(); }
  // Sorted once, and kept until the next append(). Valid as long as the gradient is neither cleared nor appended to.
  const Occurrences& occurrences();

  // After coalesce(). Everything below is in the order of ids().
  const std::vector<int32_t>& ids() const;        // (U), strictly increasing
  const std::vector<int32_t>& counts() const;     // (U), how often each id was read
  std::span<Real> row(int64_t k);                 // (D)
  std::span<const Real> row(int64_t k) const;     // (D)
  Tensor& values() { return sums_; }              // (U,D)
  const Tensor& values() const { return sums_; }  // (U,D)
  void scale(Real factor);                        // of every row
  void add_to(Tensor& dense) const;               // dense (V,D) += this

 private:
  struct Chunk {
    Ids ids;
    Tensor dy;  // (n,D)
    std::shared_ptr<const SortedIds> sorted;
  };
  Occurrences join(std::span<const Chunk* const> chunks) const;

  int64_t rows_ = 0, width_ = 0;
  std::vector<Chunk> pending_, kept_;
  bool keep_ = false;
  std::vector<int32_t> ids_, counts_;
  Tensor sums_;
  Occurrences occurrences_;  // when sorted_
  bool sorted_ = false;
};

}  // namespace rowan
