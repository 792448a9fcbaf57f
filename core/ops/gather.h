// gather: rows of a table by id, the embedding lookup.
//
//   y[i] = table[ids[i]]        dtable[ids[i]] += dy[i]
//
// table (V,D), ids of any shape of up to three dimensions, usually (B,T); y (B,T,D). Ids are checked before anything is read: one
// outside [0,V) is an error with the id, its place and V. A row-sparse table receives (ids, dy) as they are, in O(N*D). A dense
// table (tied to the LM head) has them added: repeated ids are summed in token order first, so the result does not depend on the
// number of threads.
#pragma once

#include <algorithm>
#include <memory>

#include "core/kernels/prefetch.h"
#include "core/kernels/stream_copy.h"
#include "core/parallel.h"
#include "core/variable.h"

namespace rowan {

namespace detail {

// y = the rows of `from`, token by token.
inline void copy_rows(const Real* from, const Ids& ids, int64_t width, Real* y) {
  constexpr int64_t kRowsAPiece = 64;
  const int64_t ahead = prefetch_distance<Real>(width);
  parallel_ranges(ids.size(), kRowsAPiece, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (i + ahead < end) prefetch_row(from + ids[i + ahead] * width, width);
      std::copy_n(from + ids[i] * width, width, y + i * width);
    }
  });
}

// The same row by row, cut as the update will be: see rows_a_piece().
inline void copy_sorted_rows(const Real* from, const SortedIds& ids, int64_t width, Real* y) {
  constexpr int64_t kLarge = int64_t{16} << 20;  // bytes of y that no cache would hold until they are read
  const int64_t ahead = prefetch_distance<Real>(width), unique = std::ssize(ids.unique);
  const int64_t bytes = width * static_cast<int64_t>(sizeof(Real));
  const bool stream = std::ssize(ids.order) * bytes >= kLarge && can_stream(y, bytes);
  const auto row = [&](int64_t k) { return from + ids.unique[static_cast<size_t>(k)] * width; };
  parallel_ranges(unique, rows_a_piece(width), [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      if (k + ahead < unique) prefetch_row(row(k + ahead), width);
      const auto last = static_cast<size_t>(ids.begin[static_cast<size_t>(k) + 1]);
      for (auto i = static_cast<size_t>(ids.begin[static_cast<size_t>(k)]); i < last; ++i) {
        Real* const to = y + ids.order[i] * width;
        stream ? stream_copy(row(k), bytes, to) : static_cast<void>(std::copy_n(row(k), width, to));
      }
    }
    if (stream) stream_fence();
  });
}

}  // namespace detail

inline Variable gather(const Variable& table, const Ids& ids) {
  ROWAN_CHECK(table.shape().rank() == 2, "[gather] the table must be (V,D), not ", table.shape());
  const int64_t rows = table.shape()[0], width = table.shape()[1];
  check_ids(ids, rows, "gather");
  Shape shape = ids.shape();
  shape.append(width);
  Tensor y(shape);
  std::shared_ptr<const SortedIds> sorted;
  if (grad_enabled() && table.needs_grad()) sorted = std::make_shared<const SortedIds>(sort_ids(ids.values()));
  // Few rows that repeat much are too few pieces for all threads, and soon back with the core that writes them.
  constexpr int64_t kMostRepeats = 4;
  if (sorted && std::ssize(sorted->unique) * kMostRepeats >= ids.size()) {
    detail::copy_sorted_rows(table.value().data(), *sorted, width, y.data());
  } else {
    detail::copy_rows(table.value().data(), ids, width, y.data());
  }
  return record("gather", y, {table}, [ids, sorted, rows, width](const Tensor& dy, InputGrads& in) {
    if (in.row_sparse(0)) return in.rows(0).append(ids, dy, sorted);
    RowSparseGrad touched(rows, width);
    touched.append(ids, dy, sorted);
    touched.coalesce();
    if (!touched.empty()) touched.add_to(in.dense(0));
  });
}

}  // namespace rowan
