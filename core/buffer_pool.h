// How the buffer pool behind Tensor rounds sizes, for those who plan memory without taking any.
#pragma once

#include <cstdint>

namespace rowan {

int64_t pooled_bytes(int64_t bytes);  // what a buffer of so many bytes takes of the pool: at most an eighth more, at least 256

}  // namespace rowan
