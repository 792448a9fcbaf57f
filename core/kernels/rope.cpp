#include "core/kernels/rope.h"

#include <cmath>
#include <vector>

#include "core/kernels/vectorize.h"
#include "core/parallel.h"

namespace rowan {
namespace {

// Position p is kBlock * (p / kBlock) + p % kBlock, and the angle addition formulas join the two parts: a cosine and a sine in
// double cost some 40 ns, four multiplications cost one.
constexpr int64_t kBlock = 64;

struct Turns {  // cosines and sines of one position, per pair
  std::vector<double> cos, sin;
};

Turns turns_at(int64_t position, const std::vector<double>& frequency) {
  Turns t{std::vector<double>(frequency.size()), std::vector<double>(frequency.size())};
  for (size_t i = 0; i < frequency.size(); ++i) {
    const double angle = static_cast<double>(position) * frequency[i];
    t.cos[i] = std::cos(angle);
    t.sin[i] = std::sin(angle);
  }
  return t;
}

ROWAN_VECTORIZED void join_turns(const double* block_cos, const double* block_sin, const double* rest_cos, const double* rest_sin,
                                 int64_t pairs, Real* cos, Real* sin) {
  ROWAN_INDEPENDENT
  for (int64_t i = 0; i < pairs; ++i) {
    cos[i] = static_cast<Real>(block_cos[i] * rest_cos[i] - block_sin[i] * rest_sin[i]);
    sin[i] = static_cast<Real>(block_sin[i] * rest_cos[i] + block_cos[i] * rest_sin[i]);
  }
}

// sign is 1 to rotate, -1 to rotate back. From one head to the next, cos and sin move on by turn_stride: 0 for the heads of one
// position, pairs for one head at positions that follow each other.
ROWAN_VECTORIZED void turn_half(Real* head, int64_t heads, int64_t stride, const Real* cos, const Real* sin, int64_t turn_stride,
                                int64_t pairs, Real sign) {
  for (int64_t h = 0; h < heads; ++h, cos += turn_stride, sin += turn_stride) {
    Real* low = head + h * stride;
    Real* high = low + pairs;
    ROWAN_INDEPENDENT
    for (int64_t i = 0; i < pairs; ++i) {
      const Real a = low[i], b = high[i], s = sign * sin[i];
      low[i] = a * cos[i] - b * s;
      high[i] = b * cos[i] + a * s;
    }
  }
}

ROWAN_VECTORIZED void turn_interleaved(Real* head, int64_t heads, int64_t stride, const Real* cos, const Real* sin,
                                       int64_t turn_stride, int64_t pairs, Real sign) {
  for (int64_t h = 0; h < heads; ++h, cos += turn_stride, sin += turn_stride) {
    Real* pair = head + h * stride;
    ROWAN_INDEPENDENT
    for (int64_t i = 0; i < pairs; ++i) {
      const Real a = pair[2 * i], b = pair[2 * i + 1], s = sign * sin[i];
      pair[2 * i] = a * cos[i] - b * s;
      pair[2 * i + 1] = b * cos[i] + a * s;
    }
  }
}

void turn(Real* head, int64_t heads, int64_t stride, const Real* cos, const Real* sin, int64_t turn_stride, const Rope& rope,
          Real sign) {
  if (rope.interleaved)
    turn_interleaved(head, heads, stride, cos, sin, turn_stride, rope.rotated / 2, sign);
  else
    turn_half(head, heads, stride, cos, sin, turn_stride, rope.rotated / 2, sign);
}

}  // namespace

void check_rope(const Rope& rope, int64_t head_dim) {
  ROWAN_CHECK(rope.rotated >= 0 && rope.rotated <= head_dim && rope.rotated % 2 == 0, "[rope] ", rope.rotated,
              " rotated elements of a head of ", head_dim, "; expected an even number of at most that many");
  ROWAN_CHECK(std::isfinite(rope.theta) && rope.theta > 0, "[rope] theta is ", rope.theta, "; expected a positive number");
}

RopeTable::RopeTable(const Rope& rope, int64_t first_position, int64_t count)
    : rope_(rope), cos_({count, rope.rotated / 2}), sin_({count, rope.rotated / 2}) {
  check_rope(rope, rope.rotated);
  ROWAN_CHECK(first_position >= 0, "[rope] position ", first_position, " is negative");
  const int64_t pairs = rope.rotated / 2;
  if (pairs == 0 || count == 0) return;
  std::vector<double> frequency(static_cast<size_t>(pairs));
  for (int64_t i = 0; i < pairs; ++i)
    frequency[static_cast<size_t>(i)] = std::pow(rope.theta, -2.0 * static_cast<double>(i) / static_cast<double>(rope.rotated));
  std::vector<Turns> rest;
  for (int64_t r = 0; r < kBlock; ++r) rest.push_back(turns_at(r, frequency));
  const int64_t first_block = first_position / kBlock, end = first_position + count;
  parallel_pieces((end - 1) / kBlock - first_block + 1, [&](int64_t piece) {
    const int64_t start = (first_block + piece) * kBlock;
    const Turns block = turns_at(start, frequency);
    for (int64_t p = std::max(start, first_position); p < std::min(start + kBlock, end); ++p) {
      const Turns& r = rest[static_cast<size_t>(p - start)];
      const int64_t offset = (p - first_position) * pairs;
      join_turns(block.cos.data(), block.sin.data(), r.cos.data(), r.sin.data(), pairs, cos_.data() + offset, sin_.data() + offset);
    }
  });
}

void rotate(Real* head, int64_t heads, int64_t stride, const Real* cos, const Real* sin, const Rope& rope) {
  turn(head, heads, stride, cos, sin, 0, rope, 1);
}

void rotate_back(Real* head, int64_t heads, int64_t stride, const Real* cos, const Real* sin, const Rope& rope) {
  turn(head, heads, stride, cos, sin, 0, rope, -1);
}

void rotate_positions(Real* head, int64_t positions, int64_t stride, const RopeTable& table, int64_t first) {
  turn(head, positions, stride, table.cos(first), table.sin(first), table.rope().rotated / 2, table.rope(), 1);
}

void rotate_positions_back(Real* head, int64_t positions, int64_t stride, const RopeTable& table, int64_t first) {
  turn(head, positions, stride, table.cos(first), table.sin(first), table.rope().rotated / 2, table.rope(), -1);
}

}  // namespace rowan
