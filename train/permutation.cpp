#include "train/permutation.h"

#include <algorithm>
#include <bit>

#include "core/error.h"

namespace rowan {
namespace {

// SplitMix64's finalizer. The shuffle needs one bit for each pair and round that looks random; the keys are random already.
uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

}  // namespace

Permutation::Permutation(int64_t n, const RandomKey& key) : n_(static_cast<uint64_t>(n)) {
  ROWAN_ASSERT(n >= 1);
  // The paper's bound asks for about 6 log2(n) rounds; the constant serves small n, where rounds cost next to nothing.
  rounds_.resize(32 + 6 * static_cast<size_t>(std::bit_width(n_)));
  for (size_t i = 0; i < rounds_.size(); ++i) rounds_[i] = {random_below(key, 2 * i, n_), random_bits(key, 2 * i + 1)};
}

int64_t Permutation::operator()(int64_t x) const {
  ROWAN_ASSERT(x >= 0 && static_cast<uint64_t>(x) < n_);
  uint64_t value = static_cast<uint64_t>(x);
  for (const Round& round : rounds_) {
    const uint64_t partner = round.partner >= value ? round.partner - value : round.partner + (n_ - value);
    // Asked with the larger of the two, so that they change places with each other or both stay.
    if (mix(std::max(value, partner) ^ round.bits) >> 63) value = partner;
  }
  return static_cast<int64_t>(value);
}

}  // namespace rowan
