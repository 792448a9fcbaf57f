#include "core/kernels/norm.h"

#include <cmath>

#include "core/kernels/elementwise.h"
#include "core/kernels/lanes.h"

namespace rowan {
namespace {

ROWAN_INLINE Real inverse_root(Real square, double eps) {
  return static_cast<Real>(1 / std::sqrt(static_cast<double>(square) + eps));
}

// Both norms: xhat = (x - mean) rstd, with mean = 0 for rms norm; g = dy weight.
//   dx = rstd (g - mean(g) - xhat mean(g xhat)), without the middle term for rms norm
ROWAN_VECTORIZED void backward_dx(const Real* x, const Real* weight, const Real* dy, Real mean, Real rstd, bool centred, int64_t n,
                                  bool overwrite, Real* dx) {
  const auto g = [=](int64_t i) { return dy[i] * weight[i]; };
  const auto xhat = [=](int64_t i) { return (x[i] - mean) * rstd; };
  const TwoSums<Real> sums = lane_sums<Real>(n, g, [=](int64_t i) { return g(i) * xhat(i); });
  const Real mean_g = centred ? sums.first / static_cast<Real>(n) : 0, mean_gx = sums.second / static_cast<Real>(n);
  if (overwrite) {
    ROWAN_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) dx[i] = rstd * (g(i) - mean_g - xhat(i) * mean_gx);
  } else {
    ROWAN_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) dx[i] += rstd * (g(i) - mean_g - xhat(i) * mean_gx);
  }
}

ROWAN_VECTORIZED void backward_weight(const Real* x, const Real* dy, Real mean, Real rstd, int64_t n, Real* dweight) {
  ROWAN_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) dweight[i] += dy[i] * ((x[i] - mean) * rstd);
}

ROWAN_VECTORIZED void layer_norm_row(const Real* x, const Real* weight, const Real* bias, double eps, int64_t n, Real* y,
                                     Real& mean_out, Real& rstd_out) {
  const Real mean = lane_sum<Real>(n, [=](int64_t i) { return x[i]; }) / static_cast<Real>(n);
  const Real variance = lane_sum<Real>(n, [=](int64_t i) { return (x[i] - mean) * (x[i] - mean); }) / static_cast<Real>(n);
  const Real rstd = inverse_root(variance, eps);
  if (bias != nullptr) {
    ROWAN_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * rstd * weight[i] + bias[i];
  } else {
    ROWAN_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * rstd * weight[i];
  }
  mean_out = mean;
  rstd_out = rstd;
}

ROWAN_VECTORIZED void rms_norm_row(const Real* x, const Real* weight, double eps, int64_t n, Real* y, Real& rstd_out) {
  const Real rstd = inverse_root(lane_sum<Real>(n, [=](int64_t i) { return x[i] * x[i]; }) / static_cast<Real>(n), eps);
  ROWAN_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * rstd * weight[i];
  rstd_out = rstd;
}

void norm_backward(const NormRows& in, const NormStatistics& saved, bool centred, const Real* dy, const NormGrads& out) {
  for (int64_t r = 0; r < in.rows; ++r) {
    const Real *x = in.x + r * in.width, *d = dy + r * in.width;
    const Real mean = centred ? saved.mean[r] : 0, rstd = saved.rstd[r];
    if (out.dx != nullptr) backward_dx(x, in.weight, d, mean, rstd, centred, in.width, out.overwrite_dx, out.dx + r * in.width);
    if (out.dweight != nullptr) backward_weight(x, d, mean, rstd, in.width, out.dweight);
    if (out.dbias != nullptr) accumulate(d, out.dbias, in.width);
  }
}

}  // namespace

void layer_norm_forward(const NormRows& in, const Real* bias, double eps, Real* y, const NormStatistics& out) {
  for (int64_t r = 0; r < in.rows; ++r)
    layer_norm_row(in.x + r * in.width, in.weight, bias, eps, in.width, y + r * in.width, out.mean[r], out.rstd[r]);
}

void rms_norm_forward(const NormRows& in, double eps, Real* y, const NormStatistics& out) {
  for (int64_t r = 0; r < in.rows; ++r) rms_norm_row(in.x + r * in.width, in.weight, eps, in.width, y + r * in.width, out.rstd[r]);
}

void layer_norm_backward(const NormRows& in, const NormStatistics& saved, const Real* dy, const NormGrads& out) {
  norm_backward(in, saved, true, dy, out);
}

void rms_norm_backward(const NormRows& in, const NormStatistics& saved, const Real* dy, const NormGrads& out) {
  norm_backward(in, saved, false, dy, out);
}

}  // namespace rowan
