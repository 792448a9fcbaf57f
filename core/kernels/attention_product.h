// The small matrix products inside attention: one call for a tile that stays in cache, single-threaded.
//
//   c (m,n)  = or +=  a (m,k) b (k,n)      b and c row-major; a row-major, or stored as (k,m) in tile_product_transposed
//
// n must be a multiple of kLanes: whoever lays out b and c pads them. m and k are free. The library calls behind core/kernels/gemm
// copy their operands into a layout of their own first, which for tiles of 64 costs about as much as the product; here the
// operands are laid out once and used by many tiles.
//
// Versions for AVX-512, AVX2 with FMA, and plain vectors of the base instruction set; the first that the processor has is used.
// A row of c does not depend on the rows it is computed with, and every element sums over k in rising order.
#pragma once

#include <cstdint>
#include <vector>

#include "core/kernels/lanes.h"
#include "core/real.h"

namespace rowan {

inline int64_t round_up_to_lanes(int64_t n) {
  return (n + kLanes - 1) / kLanes * kLanes;
}

struct TileOperand {
  const Real* data;
  int64_t ld;  // distance between rows as stored
};

void tile_product(int64_t m, int64_t n, int64_t k, TileOperand a, TileOperand b, Real* c, int64_t ldc, bool accumulate);
void tile_product_transposed(int64_t m, int64_t n, int64_t k, TileOperand a, TileOperand b, Real* c, int64_t ldc, bool accumulate);

// The versions that this processor can run, the one in use first: for reports, and for tests, which compare them all.
using TileProduct = void (*)(int64_t m, int64_t n, int64_t k, TileOperand a, TileOperand b, Real* c, int64_t ldc, bool accumulate);
struct TileProductVersion {
  const char* name;  // "avx512", "avx2", "baseline"
  TileProduct plain, transposed;
};
std::vector<TileProductVersion> tile_product_versions();

}  // namespace rowan
