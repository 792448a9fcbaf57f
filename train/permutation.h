// Permutation: an order of 0..n-1 that is computed number by number, so it takes no memory and any place of it can be asked for.
//
// The swap-or-not shuffle (Hoang, Morris, Rogaway: "An Enciphering Scheme Based on a Card Shuffle", CRYPTO 2012), which works for
// any n. Each round pairs x with (key - x) mod n, and a bit that both share says whether they change places.
#pragma once

#include <cstdint>
#include <vector>

#include "core/rng.h"

namespace rowan {

class Permutation {
 public:
  Permutation(int64_t n, const RandomKey& key);  // n >= 1; the same order for the same key

  int64_t operator()(int64_t x) const;  // x in [0, n)

 private:
  struct Round {
    uint64_t partner;  // the two of a pair add up to this, modulo n
    uint64_t bits;     // whitens the question whether they change places
  };
  uint64_t n_;
  std::vector<Round> rounds_;
};

}  // namespace rowan
