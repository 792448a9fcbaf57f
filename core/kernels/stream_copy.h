// stream_copy: a copy to memory that is not read again soon, past the caches: what lay there is not fetched first, and what the
// caches hold stays. For results larger than a core's own caches, which would be gone from there before anybody reads them.
#pragma once

#include <algorithm>
#include <cstdint>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace rowan {

inline bool can_stream(const void* to, int64_t bytes_a_row) {
  return reinterpret_cast<uintptr_t>(to) % 16 == 0 && bytes_a_row % 16 == 0;
}

// `bytes` and `to` are multiples of 16. Other threads may read the copy after this one has called stream_fence().
inline void stream_copy(const void* from, int64_t bytes, void* to) {
#if defined(__x86_64__)
  const auto* const in = static_cast<const __m128i*>(from);
  auto* const out = static_cast<__m128i*>(to);
  for (int64_t i = 0; i < bytes / 16; ++i) _mm_stream_si128(out + i, _mm_loadu_si128(in + i));
#else
  std::copy_n(static_cast<const char*>(from), bytes, static_cast<char*>(to));
#endif
}

inline void stream_fence() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

}  // namespace rowan
