// RoPE for a model: which elements of a head are rotated, as the config says. The rotation itself happens inside attention.
// Su et al., "RoFormer: enhanced transformer with rotary position embedding", 2021.
#pragma once

#include <cmath>
#include <optional>

#include "core/kernels/rope.h"
#include "layers/gpt_config.h"

namespace rowan {

// Elements of each head that are rotated: an even number, at least 2.
inline int64_t rotated_width(const GptConfig& c) {
  return 2 * static_cast<int64_t>(std::floor(c.rope.fraction * static_cast<double>(c.head_dim()) / 2));
}

inline std::optional<Rope> make_rope(const GptConfig& c) {
  if (c.positions != "rope") return std::nullopt;
  return Rope{.theta = c.rope.theta, .interleaved = c.rope.style == "interleaved", .rotated = rotated_width(c)};
}

}  // namespace rowan
