#include "core/rng.h"

#include <cmath>
#include <numbers>

#include "core/parallel.h"

namespace rowan {
namespace {

uint64_t mix(uint64_t x) {  // SplitMix64's finalizer: spreads a small seed over all 64 bits
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

}  // namespace

std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> c, std::array<uint32_t, 2> k) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53} * c[0], p1 = uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k[0], static_cast<uint32_t>(p1), static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k[1],
         static_cast<uint32_t>(p0)};
    k[0] += 0x9E3779B9u;
    k[1] += 0xBB67AE85u;
  }
  return c;
}

std::array<uint32_t, 2> philox_key(const RandomKey& key) {
  const uint64_t k = mix(key.seed ^ mix((static_cast<uint64_t>(key.purpose) << 32) | key.site));
  return {static_cast<uint32_t>(k), static_cast<uint32_t>(k >> 32)};
}

std::array<uint32_t, 4> philox(const RandomKey& key, uint64_t block) {
  return philox4x32({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), static_cast<uint32_t>(key.step),
                     static_cast<uint32_t>(key.step >> 32)},
                    philox_key(key));
}

uint64_t random_bits(const RandomKey& key, uint64_t position) {
  const auto b = philox(key, position / 2);
  return position % 2 == 0 ? (uint64_t{b[1]} << 32 | b[0]) : (uint64_t{b[3]} << 32 | b[2]);
}

double random_uniform(const RandomKey& key, uint64_t position) {
  return static_cast<double>(random_bits(key, position) >> 11) * 0x1p-53;
}

double random_normal(const RandomKey& key, uint64_t position) {
  const auto b = philox(key, position / 2);
  const double u = (static_cast<double>((uint64_t{b[1]} << 32 | b[0]) >> 11) + 0.5) * 0x1p-53;  // in (0, 1): the log is finite
  const double v = static_cast<double>((uint64_t{b[3]} << 32 | b[2]) >> 11) * 0x1p-53;
  const double radius = std::sqrt(-2 * std::log(u)), angle = 2 * std::numbers::pi * v;
  return radius * (position % 2 == 0 ? std::cos(angle) : std::sin(angle));
}

uint64_t random_below(const RandomKey& key, uint64_t position, uint64_t n) {
  ROWAN_ASSERT(n > 0);
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>((static_cast<Wide>(random_bits(key, position)) * n) >> 64);
}

void fill_normal(Tensor& t, const RandomKey& key, double mean, double deviation) {
  Real* out = t.data();
  parallel_ranges(t.size(), 1 << 14, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      out[i] = static_cast<Real>(mean + deviation * random_normal(key, static_cast<uint64_t>(i)));
  });
}

uint32_t site_of(std::string_view name) {
  uint32_t h = 2166136261u;
  for (char c : name) h = (h ^ static_cast<unsigned char>(c)) * 16777619u;
  return h;
}

}  // namespace rowan
