// What layer_norm and rms_norm share: checks, and the backward that sums dweight and dbias over fixed blocks of rows.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/kernels/norm.h"
#include "core/kernels/reduce.h"
#include "core/parallel.h"
#include "core/variable.h"

namespace rowan::detail {

inline void check_norm(const char* op, const Variable& x, const Variable& weight, double eps) {
  ROWAN_CHECK(x.shape().rank() >= 1 && x.shape().back() > 0, "[", op, "] x is ", x.shape(),
              "; expected rows of at least one element");
  ROWAN_CHECK(weight.shape() == (Shape{x.shape().back()}), "[", op, "] x has width ", x.shape().back(), " but the weight is ",
              weight.shape());
  ROWAN_CHECK(std::isfinite(eps) && eps > 0, "[", op, "] eps is ", eps, "; expected a positive number");
}

// At most 64 pieces, so that the blocks' sums stay small beside x, of at least 8 rows.
inline int64_t norm_rows_a_piece(int64_t rows) {
  return std::max<int64_t>(8, (rows + 63) / 64);
}

using NormBackward = void (*)(const NormRows& in, const NormStatistics& saved, const Real* dy, const NormGrads& out);

// Inputs are (x, weight[, bias]).
inline void norm_backward(NormBackward kernel, const Tensor& x, const Tensor& weight, const NormStatistics& saved, const Tensor& dy,
                          InputGrads& in, bool wants_bias) {
  const int64_t width = x.shape().back(), rows = x.shape().rows(), grain = norm_rows_a_piece(rows),
                pieces = (rows + grain - 1) / grain;
  Tensor dweight, dbias;  // (pieces, D)
  if (in.wants(1)) dweight = Tensor::zeros({pieces, width});
  if (wants_bias) dbias = Tensor::zeros({pieces, width});
  NormGrads all;
  if (in.wants(0)) {
    const InputGrads::Target dx = in.target(0);
    all.dx = dx.tensor.data();
    all.overwrite_dx = dx.fresh;
  }
  const auto block = [](Tensor& t, int64_t at) { return t.empty() ? nullptr : t.data() + at; };
  parallel_ranges(rows, grain, [&](int64_t begin, int64_t end) {
    NormGrads out = all;
    if (out.dx != nullptr) out.dx += begin * width;
    out.dweight = block(dweight, begin / grain * width);
    out.dbias = block(dbias, begin / grain * width);
    const NormStatistics rows_saved{saved.mean == nullptr ? nullptr : saved.mean + begin, saved.rstd + begin};
    kernel({x.data() + begin * width, weight.data(), end - begin, width}, rows_saved, dy.data() + begin * width, out);
  });
  if (in.wants(1)) add_column_sums(dweight.data(), pieces, width, in.dense(1).data());
  if (wants_bias) add_column_sums(dbias.data(), pieces, width, in.dense(2).data());
}

}  // namespace rowan::detail
