// The norm of all gradients taken together, and clipping by it.
//
// Rows of a row-sparse gradient are summed over repeated ids first: clipping is about the gradient, not about its pieces.
// They are not written down for it: where few ids repeat, sums live as long as a row's squares take, and the update makes them
// again. Squares are added in double, row by row and in pieces cut by size and joined in order, so the norm has the same bits for
// any thread count.
//
//   GradNorm norm = global_grad_norm(parameters);
//   if (!norm.finite) ...                          // stop before any step: nothing has been changed
//   info.grad_scale = norm.scale(clip_norm);       // rules multiply as they read: no pass over the gradients of its own
#pragma once

#include <span>
#include <string>

#include "core/parameter.h"

namespace rowan {

struct NamedParameter {
  std::string name;
  Parameter* parameter = nullptr;
};

struct GradNorm {
  double norm = 0;         // 2-norm; parameters without a gradient count as 0
  bool finite = true;      // every element is, and so is the norm
  std::string non_finite;  // the first parameter, in the order given, that is not

  // min(1, clip_norm / (norm + 1e-6)), as torch.nn.utils.clip_grad_norm_; 1 when clip_norm is 0 (no clipping).
  double scale(double clip_norm) const;
};

GradNorm global_grad_norm(std::span<const NamedParameter> parameters);

}  // namespace rowan
