#include "core/kernels/dropout.h"

#include <algorithm>
#include <array>

#include "core/kernels/vectorize.h"

namespace rowan {
namespace {

constexpr int64_t kBlocks = 32;          // Philox blocks at a time
constexpr int64_t kWords = 4 * kBlocks;  // and the numbers in them

struct Mask {
  std::array<uint32_t, 2> key;
  std::array<uint32_t, 2> step;
  uint32_t threshold;  // a word below it drops the element
  Real survivor;
};

// Ten rounds of Philox over kBlocks counters in step, then the words in order of element. The same bits as philox4x32().
ROWAN_VECTORIZED void masks_of_blocks(const Mask& mask, uint64_t first_block, Real* out) {
  uint32_t c0[kBlocks], c1[kBlocks], c2[kBlocks], c3[kBlocks];
  for (uint64_t l = 0; l < kBlocks; ++l) {
    c0[l] = static_cast<uint32_t>(first_block + l);
    c1[l] = static_cast<uint32_t>((first_block + l) >> 32);
    c2[l] = mask.step[0];
    c3[l] = mask.step[1];
  }
  uint32_t k0 = mask.key[0], k1 = mask.key[1];
  for (int round = 0; round < 10; ++round) {
    for (int64_t l = 0; l < kBlocks; ++l) {
      const uint64_t p0 = uint64_t{0xD2511F53} * c0[l], p1 = uint64_t{0xCD9E8D57} * c2[l];
      c0[l] = static_cast<uint32_t>(p1 >> 32) ^ c1[l] ^ k0;
      c1[l] = static_cast<uint32_t>(p1);
      c2[l] = static_cast<uint32_t>(p0 >> 32) ^ c3[l] ^ k1;
      c3[l] = static_cast<uint32_t>(p0);
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  const uint32_t threshold = mask.threshold;
  const Real survivor = mask.survivor;
  for (int64_t l = 0; l < kBlocks; ++l) {
    out[4 * l] = c0[l] < threshold ? Real(0) : survivor;
    out[4 * l + 1] = c1[l] < threshold ? Real(0) : survivor;
    out[4 * l + 2] = c2[l] < threshold ? Real(0) : survivor;
    out[4 * l + 3] = c3[l] < threshold ? Real(0) : survivor;
  }
}

}  // namespace

void dropout_scale(const RandomKey& key, double p, uint64_t first_index, int64_t n, Real* out) {
  ROWAN_ASSERT(p >= 0 && p < 1);
  const auto threshold = static_cast<uint32_t>(std::min(p * 0x1p32, 0x1p32 - 1));
  const Mask mask{philox_key(key),
                  {static_cast<uint32_t>(key.step), static_cast<uint32_t>(key.step >> 32)},
                  threshold,
                  static_cast<Real>(1 / (1 - p))};
  Real some[kWords];
  for (int64_t done = 0; done < n;) {
    const uint64_t index = first_index + static_cast<uint64_t>(done);
    const auto skipped = static_cast<int64_t>(index % 4);
    const int64_t count = std::min(kWords - skipped, n - done);
    const bool whole = count == kWords;
    masks_of_blocks(mask, index / 4, whole ? out + done : some);
    if (!whole) std::copy_n(some + skipped, count, out + done);
    done += count;
  }
}

}  // namespace rowan
