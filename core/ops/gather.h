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

#include "core/kernels/prefetch.h"
#include "core/parallel.h"
#include "core/variable.h"

namespace rowan {

inline Variable gather(const Variable& table, const Ids& ids) {
  ROWAN_CHECK(table.shape().rank() == 2, "[gather] the table must be (V,D), not ", table.shape());
  const int64_t rows = table.shape()[0], width = table.shape()[1];
  check_ids(ids, rows, "gather");
  Shape shape = ids.shape();
  shape.append(width);
  Tensor y(shape);
  constexpr int64_t kRowsAPiece = 64;
  const Real* const from = table.value().data();
  const int64_t ahead = prefetch_distance<Real>(width);
  parallel_ranges(ids.size(), kRowsAPiece, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (i + ahead < end) prefetch_row(from + ids[i + ahead] * width, width);
      std::copy_n(from + ids[i] * width, width, y.data() + i * width);
    }
  });
  return record("gather", y, {table}, [ids, rows, width](const Tensor& dy, InputGrads& in) {
    if (in.row_sparse(0)) return in.rows(0).append(ids, dy);
    RowSparseGrad touched(rows, width);
    touched.append(ids, dy);
    touched.coalesce();
    if (!touched.empty()) touched.add_to(in.dense(0));
  });
}

}  // namespace rowan
