// prefetch_row: asks for a row that is read or written soon. Rows of a table lie anywhere in memory, and the processor guesses only
// what follows the address before; without it a thread waits once a row for all of a memory access.
#pragma once

#include <algorithm>
#include <cstdint>

namespace rowan {

// Into the second cache level: the first is small, and work on the row before goes on there. Of a long row only the beginning:
// by then the processor's own prefetching has seen where it leads.
template <class T>
inline void prefetch_row(const T* row, int64_t n) {
  constexpr int64_t kLine = 64, kMost = 4096;
  const auto* const at = reinterpret_cast<const char*>(row);
  const int64_t bytes = std::min(kMost, n * static_cast<int64_t>(sizeof(T)));
  for (int64_t b = 0; b < bytes; b += kLine) __builtin_prefetch(at + b, 0, 2);
}

// How many rows ahead to ask: about a page, so that the answer has come when its turn has.
template <class T>
inline int64_t prefetch_distance(int64_t width) {
  return std::clamp<int64_t>(4096 / (std::max<int64_t>(1, width) * static_cast<int64_t>(sizeof(T))), 1, 8);
}

}  // namespace rowan
