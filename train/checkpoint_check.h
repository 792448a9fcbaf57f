// What can be told of a checkpoint without the data it was trained on: whether evaluation, and for a complete one a resume, would
// take what it says.
#pragma once

#include "train/checkpoint.h"

namespace rowan {

// Throws Error (kData): a config, a tokenizer or a parameter that is missing, extra or of another shape; of a complete checkpoint
// also optimizer state that is not what the config's rules keep, counters below 0; numbers that are not finite.
void check_usable(Checkpoint& checkpoint);

}  // namespace rowan
