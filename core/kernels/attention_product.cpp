// Compiled with -ffp-contract=fast (CMakeLists.txt): the products below must become fused multiply-adds. Results therefore depend
// on the instruction set, as those of the libraries behind core/kernels/gemm do, but on nothing else.
#include "core/kernels/attention_product.h"

#include "core/error.h"

namespace rowan {
namespace {

namespace baseline {
#define ROWAN_TARGET
#define ROWAN_VECTOR_BYTES 16
#define ROWAN_BLOCK_ROWS 4
#include "core/kernels/attention_product_body.h"
#undef ROWAN_TARGET
#undef ROWAN_VECTOR_BYTES
#undef ROWAN_BLOCK_ROWS
}  // namespace baseline

#if defined(__x86_64__)
#define ROWAN_X86_VERSIONS 1

namespace avx2 {
#define ROWAN_TARGET __attribute__((target("avx2,fma")))
#define ROWAN_VECTOR_BYTES 32
#define ROWAN_BLOCK_ROWS 6
#include "core/kernels/attention_product_body.h"
#undef ROWAN_TARGET
#undef ROWAN_VECTOR_BYTES
#undef ROWAN_BLOCK_ROWS
}  // namespace avx2

namespace avx512 {
#define ROWAN_TARGET __attribute__((target("avx2,fma,avx512f,avx512vl,avx512bw,avx512dq")))
#define ROWAN_VECTOR_BYTES 64
#define ROWAN_BLOCK_ROWS 8
#include "core/kernels/attention_product_body.h"
#undef ROWAN_TARGET
#undef ROWAN_VECTOR_BYTES
#undef ROWAN_BLOCK_ROWS
}  // namespace avx512
#endif

const TileProductVersion& best_version() {
  static const TileProductVersion best = tile_product_versions().front();
  return best;
}

}  // namespace

std::vector<TileProductVersion> tile_product_versions() {
  std::vector<TileProductVersion> versions;
#if defined(ROWAN_X86_VERSIONS)
  const bool fma = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (fma && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq"))
    versions.push_back({"avx512", avx512::product<false>, avx512::product<true>});
  if (fma) versions.push_back({"avx2", avx2::product<false>, avx2::product<true>});
#endif
  versions.push_back({"baseline", baseline::product<false>, baseline::product<true>});
  return versions;
}

void tile_product(int64_t m, int64_t n, int64_t k, TileOperand a, TileOperand b, Real* c, int64_t ldc, bool accumulate) {
  ROWAN_ASSERT(n % kLanes == 0);
  best_version().plain(m, n, k, a, b, c, ldc, accumulate);
}

void tile_product_transposed(int64_t m, int64_t n, int64_t k, TileOperand a, TileOperand b, Real* c, int64_t ldc, bool accumulate) {
  ROWAN_ASSERT(n % kLanes == 0);
  best_version().transposed(m, n, k, a, b, c, ldc, accumulate);
}

}  // namespace rowan
