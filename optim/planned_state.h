// The size of an optimizer's state for a parameter, from its shape alone: for planning a model that may not fit into memory.
#pragma once

#include <cstdint>

#include "optim/optimizer.h"

namespace rowan {

// What rule.state_bytes() would be after prepare(). Error for a rule that does not say beforehand what it will keep; every
// RowOptimizer does.
int64_t planned_state_bytes(const Optimizer& rule, const Shape& shape, GradKind kind);

}  // namespace rowan
