// LearnedPositions: a table of position vectors, added to the token vectors of every sequence. Rows 0..T-1 are touched, so the
// gradient is row-sparse.
#pragma once

#include <numeric>

#include "core/ops/add_rows.h"
#include "core/ops/gather.h"
#include "layers/module.h"

namespace rowan {

struct LearnedPositions final : Module {
  Parameter weight;  // (max_seq_len,D); absent when the model has no learned positions

  LearnedPositions() = default;
  LearnedPositions(int64_t max_seq_len, int64_t d_model) : weight(Tensor({max_seq_len, d_model}), GradKind::kRowSparse) {}

  void visit(ParamVisitor& v) override { v("weight", weight); }

  // x (B,T,D) at positions first..first+T-1.
  Variable forward(const Variable& x, int64_t first = 0) const {
    const int64_t length = x.shape()[1], longest = weight.shape()[0];
    ROWAN_CHECK(first + length <= longest, "[positions] the input reaches position ", first + length, ", but max_seq_len is ",
                longest);
    Ids places({length});
    std::iota(places.values().begin(), places.values().end(), static_cast<int32_t>(first));
    return add_rows(x, gather(weight.var, places));
  }
};

}  // namespace rowan
