// lamb: Adam's direction, with a step in proportion to the norm of the row.
//
//   m, v as Adam     u = (m / c1) / (sqrt(v / c2) + eps) + weight_decay * w
//   w -= lr * (|w| / |u|) * u,  the ratio being 1 when |w| or |u| is 0
//
// State: m (exp_avg), v (exp_avg_sq) per element. The trust ratio is per row (a vector is one row), as FBGEMM has it for tables;
// the paper takes it per layer. Weight decay stands inside u. You et al., "Large batch optimization for deep learning", ICLR 2020.
#include <algorithm>

#include "core/kernels/vectorize.h"
#include "optim/adam_like.h"
#include "optim/row_math.h"

namespace rowan {
namespace {

constexpr int64_t kChunk = 256;  // of a row, whose direction is held between the norm and the step; made anew for the step

struct LambScalars {
  Real root_factor, eps, inverse_c1, decay;
};

ROWAN_VECTORIZED void moments(Real* __restrict m, Real* __restrict v, const Real* __restrict g, int64_t n, RunningMean mean,
                              Real beta2, Real one_minus_beta2) {
  for (int64_t j = 0; j < n; ++j) {
    m[j] = mean(m[j], g[j]);
    v[j] = beta2 * v[j] + one_minus_beta2 * (g[j] * g[j]);
  }
}

ROWAN_VECTORIZED void direction(const Real* __restrict w, const Real* __restrict m, const Real* __restrict v, int64_t n,
                                const LambScalars s, Real* __restrict u) {
  for (int64_t j = 0; j < n; ++j) u[j] = quotient(s.inverse_c1 * m[j], std::sqrt(v[j]) * s.root_factor + s.eps) + s.decay * w[j];
}

class Lamb final : public AdamLike {
 public:
  Lamb() { eps_ = 1e-6; }
  std::vector<Slot> slots() const override { return {{"exp_avg"}, {"exp_avg_sq"}}; }
  bool decays_weights() const override { return true; }

  void update_rows(const RowBlock& b) const override {
    for (int64_t k = 0; k < b.rows; ++k) {
      const StepScalars& step = b.scalars(k);
      const Scalars s = scalars_of(step);
      moments(b.slot(0, k), b.slot(1, k), b.grad(k), b.width, s.mean, s.beta2, s.one_minus_beta2);
      move(b, k, {s.root_factor, s.eps, static_cast<Real>(step.c[2]), static_cast<Real>(b.weight_decay)});
    }
  }

 private:
  void move(const RowBlock& b, int64_t k, const LambScalars s) const {
    Real u[kChunk];
    double squares = 0;
    const auto chunk = [&](int64_t at) {
      const int64_t n = std::min(kChunk, b.width - at);
      direction(b.weight(k) + at, b.slot(0, k) + at, b.slot(1, k) + at, n, s, u);
      return n;
    };
    for (int64_t at = 0; at < b.width; at += kChunk) {
      const int64_t n = chunk(at);
      squares += sum_squares(u, n);
    }
    const double weight = std::sqrt(sum_squares(b.weight(k), b.width)), length = std::sqrt(squares);
    const double ratio = weight > 0 && length > 0 ? weight / length : 1;
    for (int64_t at = 0; at < b.width; at += kChunk) {
      const int64_t n = chunk(at);
      add_scaled(u, n, static_cast<Real>(-b.lr * ratio), b.weight(k) + at);
    }
  }
};

ROWAN_REGISTER_OPTIMIZER("lamb", Lamb);

}  // namespace
}  // namespace rowan
