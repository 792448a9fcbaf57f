// Names, shapes and gradient kinds of a model's parameters, from its config alone: for planning a model that may not fit into
// memory. In the order in which Gpt visits them.
#pragma once

#include <string>
#include <vector>

#include "core/shape.h"
#include "core/variable.h"
#include "layers/gpt_config.h"

namespace rowan {

struct ParameterSpec {
  std::string name;  // "blocks.0.attn.qkv.weight"
  Shape shape;
  GradKind kind = GradKind::kDense;
  bool shared = false;  // the weights are those of another parameter: HeadGrads::kTwoSource
};

// config must be resolved.
std::vector<ParameterSpec> parameter_specs(const GptConfig& config, HeadGrads head = HeadGrads::kDense);

}  // namespace rowan
