// Limits of the counters that a checkpoint keeps.
#pragma once

#include <cstdint>

namespace rowan {

// No counter of a run gets this far. A loaded one beyond it is refused by its owner, so that nothing that adds to it, or multiplies
// it by a number of micro-batches, can overflow.
inline constexpr int64_t kLargestCount = int64_t{1} << 40;

}  // namespace rowan
