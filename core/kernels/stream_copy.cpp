#include "core/kernels/stream_copy.h"

#include <algorithm>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rowan {

#if defined(__x86_64__)
namespace {

// A line in one store: in four, which the processor has to gather, a copy of 50 MB took a third longer on Zen 5.
__attribute__((target("avx512f"))) void copy_lines_avx512(const void* from, int64_t bytes, void* to) {
  const auto* const in = static_cast<const __m512i*>(from);
  auto* const out = static_cast<__m512i*>(to);
  for (int64_t i = 0; i < bytes / kStreamLine; ++i) _mm512_stream_si512(out + i, _mm512_loadu_si512(in + i));
}

void copy_lines(const void* from, int64_t bytes, void* to) {
  const auto* const in = static_cast<const __m128i*>(from);
  auto* const out = static_cast<__m128i*>(to);
  for (int64_t i = 0; i < bytes / 16; ++i) _mm_stream_si128(out + i, _mm_loadu_si128(in + i));
}

}  // namespace

void stream_copy(const void* from, int64_t bytes, void* to) {
  static const auto copy = __builtin_cpu_supports("avx512f") ? copy_lines_avx512 : copy_lines;
  copy(from, bytes, to);
}

void stream_fence() {
  _mm_sfence();
}
#else
void stream_copy(const void* from, int64_t bytes, void* to) {
  std::copy_n(static_cast<const char*>(from), bytes, static_cast<char*>(to));
}

void stream_fence() {}
#endif

}  // namespace rowan
