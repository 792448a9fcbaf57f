#include "optim/sgd_rule.h"

#include "core/kernels/vectorize.h"

namespace rowan {
namespace {

ROWAN_VECTORIZED void plain_row(Real* __restrict w, const Real* __restrict g, int64_t n, Real lr, Real grad_scale) {
  for (int64_t j = 0; j < n; ++j) w[j] -= lr * (grad_scale * g[j]);
}

// `keep` is momentum, or 0 in the first update, whose buffer is the gradient itself.
struct MomentumScalars {
  Real lr, momentum, keep, take, grad_scale;
};

ROWAN_VECTORIZED void momentum_row(Real* __restrict w, Real* __restrict b, const Real* __restrict g, int64_t n,
                                   const MomentumScalars s) {
  for (int64_t j = 0; j < n; ++j) {
    b[j] = s.keep * b[j] + s.take * (s.grad_scale * g[j]);
    w[j] -= s.lr * b[j];
  }
}

ROWAN_VECTORIZED void nesterov_row(Real* __restrict w, Real* __restrict b, const Real* __restrict g, int64_t n,
                                   const MomentumScalars s) {
  for (int64_t j = 0; j < n; ++j) {
    const Real gj = s.grad_scale * g[j];
    b[j] = s.keep * b[j] + s.take * gj;
    w[j] -= s.lr * (gj + s.momentum * b[j]);
  }
}

}  // namespace

void SgdRule::visit(FieldVisitor& v) {
  RowOptimizer::visit(v);
  v("momentum", momentum_, "share of the last update that is kept (0: none, and no state)", from_below(0, 1));
  v("dampening", dampening_, "the buffer takes 1 - dampening of each gradient", between(0, 1));
  v("nesterov", nesterov_, "looks ahead along the momentum");
}

void SgdRule::validate() const {
  RowOptimizer::validate();
  ROWAN_CHECK(!nesterov_ || (momentum_ > 0 && dampening_ == 0), "[", rule(),
              "] nesterov needs momentum > 0 and dampening 0; they are ", momentum_, " and ", dampening_);
}

std::vector<Slot> SgdRule::slots() const {
  return momentum_ > 0 ? std::vector<Slot>{{"momentum_buffer"}} : std::vector<Slot>{};
}

void SgdRule::fill_scalars(StepScalars& s) const {
  // The buffer starts with the gradient itself, which without dampening it does anyway, from 0.
  s.c[0] = momentum_ > 0 && dampening_ > 0 && s.step == 1;
}

void SgdRule::update_rows(const RowBlock& b) const {
  MomentumScalars s{static_cast<Real>(b.lr), static_cast<Real>(momentum_), 0, 1, b.grad_scale};
  for (int64_t k = 0; k < b.rows; ++k) {
    if (momentum_ == 0) {
      plain_row(b.weight(k), b.grad(k), b.width, s.lr, s.grad_scale);
      continue;
    }
    const bool first = b.scalars(k).c[0] != 0;
    s.keep = first ? Real{0} : s.momentum;
    s.take = first ? Real{1} : static_cast<Real>(1 - dampening_);
    (nesterov_ ? nesterov_row : momentum_row)(b.weight(k), b.slot(0, k), b.grad(k), b.width, s);
  }
}

}  // namespace rowan
