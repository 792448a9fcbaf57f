// adam8bit: AdamW whose moments are kept in 8 bits, in blocks of 64 elements of a row with one scale each.
//
//   m, v and the step as adamw, computed in Real; between steps
//   m = scale * sign(q) (q / 127)^2, q in [-127, 127], rounded to nearest            scale: the block's largest |m|
//   v = (scale * p / 255)^2, p in [0, 255], rounded up                               scale: the block's largest sqrt(v)
//
// Squared steps give small moments more of the range. sqrt(v) is rounded up, by at most 1/255 of the block's largest: a v rounded
// to 0 would turn the step into m / eps. State: 2 bytes an element and 2 scales a block: 2.125 bytes where adamw has 8. The idea of
// block-wise scales is that of Dettmers et al., "8-bit optimizers via block-wise quantization", ICLR 2022; the two maps here are
// simpler than its dynamic tree.
#include <algorithm>
#include <cmath>

#include "core/kernels/vectorize.h"
#include "optim/adam_like.h"
#include "optim/row_math.h"

namespace rowan {
namespace {

constexpr int kZero = 128;  // the byte of q = 0

struct Block {
  Real m[kStateBlock], v[kStateBlock];
};

ROWAN_VECTORIZED void unpack(const uint8_t* __restrict q, const uint8_t* __restrict p, Real m_scale, Real v_scale, int64_t n,
                             Block& out) {
  for (int64_t j = 0; j < n; ++j) {
    const Real x = static_cast<Real>(static_cast<int>(q[j]) - kZero) * (Real{1} / 127),
               y = static_cast<Real>(p[j]) * (v_scale * (Real{1} / 255));
    out.m[j] = m_scale * x * std::abs(x);
    out.v[j] = y * y;
  }
}

void pack(const Block& in, int64_t n, uint8_t* q, uint8_t* p, Real& m_scale, Real& v_scale) {
  Real largest_m = 0, largest_v = 0;
  for (int64_t j = 0; j < n; ++j) {
    largest_m = std::max(largest_m, std::abs(in.m[j]));
    largest_v = std::max(largest_v, in.v[j]);
  }
  m_scale = largest_m;
  v_scale = std::sqrt(largest_v);
  for (int64_t j = 0; j < n; ++j) {
    const Real x = m_scale > 0 ? std::round(127 * std::sqrt(std::abs(in.m[j]) / m_scale)) : Real{0};
    const Real y = v_scale > 0 ? std::ceil(255 * (std::sqrt(in.v[j]) / v_scale)) : Real{0};
    q[j] = static_cast<uint8_t>(kZero + static_cast<int>(in.m[j] < 0 ? -x : x));
    p[j] = static_cast<uint8_t>(std::min(Real{255}, y));
  }
}

class Adam8bit final : public AdamLike {
 public:
  std::vector<Slot> slots() const override {
    return {{"exp_avg", Slot::Per::kElementByte, kZero},
            {"exp_avg_sq", Slot::Per::kElementByte},
            {"exp_avg_scale", Slot::Per::kBlock},
            {"exp_avg_sq_scale", Slot::Per::kBlock}};
  }

  void update_rows(const RowBlock& b) const override {
    for (int64_t k = 0; k < b.rows; ++k) {
      const Scalars s = scalars_of(b.scalars(k));
      for (int64_t at = 0; at < b.width; at += kStateBlock) block(b, k, at, s);
    }
  }

 private:
  void block(const RowBlock& b, int64_t k, int64_t at, const Scalars& s) const {
    const int64_t n = std::min(kStateBlock, b.width - at);
    Real* w = b.weight(k) + at;
    const Real* g = b.grad(k) + at;
    Real &m_scale = b.slot(2, k)[at / kStateBlock], &v_scale = b.slot(3, k)[at / kStateBlock];
    Block x;
    unpack(b.bytes(0, k) + at, b.bytes(1, k) + at, m_scale, v_scale, n, x);
    for (int64_t j = 0; j < n; ++j) {
      x.m[j] = s.mean(x.m[j], g[j]);
      x.v[j] = s.beta2 * x.v[j] + s.one_minus_beta2 * (g[j] * g[j]);
      w[j] -= quotient(s.step_size * x.m[j], std::sqrt(x.v[j]) * s.root_factor + s.eps);
    }
    pack(x, n, b.bytes(0, k) + at, b.bytes(1, k) + at, m_scale, v_scale);
  }
};

ROWAN_REGISTER_OPTIMIZER("adam8bit", Adam8bit);

}  // namespace
}  // namespace rowan
