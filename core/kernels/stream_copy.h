// stream_copy: a copy to memory that is not read again soon, past the caches: what lay there is not fetched first, and what the
// caches hold stays. For results larger than the caches, which would be gone from there before anybody reads them.
#pragma once

#include <cstdint>

namespace rowan {

inline constexpr int64_t kStreamLine = 64;  // bytes; whole lines are written, at their addresses

inline bool can_stream(const void* to, int64_t bytes_a_row) {
  return reinterpret_cast<uintptr_t>(to) % kStreamLine == 0 && bytes_a_row % kStreamLine == 0;
}

// can_stream(to, bytes). Other threads may read the copy after this one has called stream_fence().
void stream_copy(const void* from, int64_t bytes, void* to);
void stream_fence();

}  // namespace rowan
