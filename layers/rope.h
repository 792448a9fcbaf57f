// RoPE for a model: which elements of a head are rotated, as the config says. The rotation itself happens inside attention.
// Su et al., "RoFormer: enhanced transformer with rotary position embedding", 2021.
#pragma once

#include <optional>

#include "core/kernels/rope.h"
#include "layers/gpt_config.h"

namespace rowan {

inline std::optional<Rope> make_rope(const GptConfig& c) {
  if (c.positions != "rope") return std::nullopt;
  return Rope{.theta = c.rope.theta, .interleaved = c.rope.style == "interleaved", .rotated = c.rotated_width()};
}

}  // namespace rowan
