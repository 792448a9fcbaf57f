// Counter-based random numbers: a value is a pure function of (seed, purpose, step, position), so nothing has to be drawn in
// order, nothing has a state to lose, and evaluation or sampling can never change the training stream.
//
// Philox4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC'11.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "core/tensor.h"

namespace rowan {

// Who asks. Two purposes never share numbers. New ones go at the end: the values are part of what a checkpoint promises.
enum class Purpose : uint32_t {
  kInit = 1,
  kDataOrder = 2,
  kDropout = 3,
  kSample = 4,
  kSyntheticData = 5,
  kNegatives = 6,
  kTest = 7,
  kBootstrap = 8
};

struct RandomKey {
  uint64_t seed = 0;
  Purpose purpose = Purpose::kTest;
  uint32_t site = 0;  // which layer, parameter or stream of that purpose
  uint64_t step = 0;
};

// The bare generator: ten rounds over a counter, for loops that draw many blocks and for tests against published values.
std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// How a RandomKey enters it: the key from seed, purpose and site; the counter is (block, step), low words first.
std::array<uint32_t, 2> philox_key(const RandomKey& key);

// The block of four 32-bit numbers at `block`.
std::array<uint32_t, 4> philox(const RandomKey& key, uint64_t block);

uint64_t random_bits(const RandomKey& key, uint64_t position);
double random_uniform(const RandomKey& key, uint64_t position);  // [0, 1), 53 bits
double random_normal(const RandomKey& key, uint64_t position);   // mean 0, deviation 1 (Box-Muller)
// An integer in [0, n), n > 0, without bias beyond 2^-64 (Lemire's multiplication).
uint64_t random_below(const RandomKey& key, uint64_t position, uint64_t n);

void fill_normal(Tensor& t, const RandomKey& key, double mean, double deviation);

// A stable 32-bit number for a name, to be used as a site (FNV-1a).
uint32_t site_of(std::string_view name);

}  // namespace rowan
