#include "core/kernels/elementwise.h"

#include "core/kernels/math.h"
#include "core/kernels/vectorize.h"

namespace rowan {
namespace {

// tanh(u) = 2 sigmoid(2u) - 1 turns gelu_tanh(x) into x sigmoid(2u), 2u = kLinear x + kCubic x^3: no cancellation for negative x.
constexpr Real kLinear = static_cast<Real>(1.5957691216057307);  // 2 sqrt(2/pi)
constexpr Real kCubic = static_cast<Real>(0.07135481627260025);  // 2 sqrt(2/pi) 0.044715

}  // namespace

ROWAN_VECTORIZED void gelu_forward(const Real* x, Real* y, int64_t n) {
  ROWAN_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * fast_normal(x[i]).below;
}

ROWAN_VECTORIZED void gelu_backward(const Real* x, const Real* dy, Real* dx, int64_t n) {
  ROWAN_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    const Normal<Real> normal = fast_normal(x[i]);
    dx[i] = dy[i] * (normal.below + x[i] * normal.density);
  }
}

ROWAN_VECTORIZED void gelu_with_slope(const Real* x, Real* y, Real* slope, int64_t n) {
  ROWAN_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    const Real at = x[i];
    const Normal<Real> normal = fast_normal(at);
    y[i] = at * normal.below;
    slope[i] = normal.below + at * normal.density;
  }
}

ROWAN_VECTORIZED void gelu_tanh_forward(const Real* x, Real* y, int64_t n) {
  ROWAN_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * fast_sigmoid(x[i] * (kLinear + kCubic * (x[i] * x[i])));
}

ROWAN_VECTORIZED void gelu_tanh_backward(const Real* x, const Real* dy, Real* dx, int64_t n) {
  ROWAN_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    const Real square = x[i] * x[i];
    const Sigmoid<Real> s = fast_sigmoid_with_slope(x[i] * (kLinear + kCubic * square));
    dx[i] = dy[i] * (s.value + x[i] * s.slope * (kLinear + 3 * kCubic * square));
  }
}

ROWAN_VECTORIZED void gelu_tanh_with_slope(const Real* x, Real* y, Real* slope, int64_t n) {
  ROWAN_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    const Real at = x[i], square = at * at;
    const Sigmoid<Real> s = fast_sigmoid_with_slope(at * (kLinear + kCubic * square));
    y[i] = at * s.value;
    slope[i] = s.value + at * s.slope * (kLinear + 3 * kCubic * square);
  }
}

ROWAN_VECTORIZED void silu_forward(const Real* x, Real* y, int64_t n) {
  ROWAN_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * fast_sigmoid(x[i]);
}

ROWAN_VECTORIZED void silu_backward(const Real* x, const Real* dy, Real* dx, int64_t n) {
  ROWAN_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    const Sigmoid<Real> s = fast_sigmoid_with_slope(x[i]);
    dx[i] = dy[i] * (s.value + x[i] * s.slope);
  }
}

ROWAN_VECTORIZED void swiglu_forward(const Real* gate, const Real* up, Real* y, int64_t n) {
  ROWAN_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) y[i] = gate[i] * fast_sigmoid(gate[i]) * up[i];
}

ROWAN_VECTORIZED void swiglu_backward(const Real* gate, const Real* up, const Real* dy, Real* dgate, Real* dup, int64_t n) {
  ROWAN_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    const Sigmoid<Real> s = fast_sigmoid_with_slope(gate[i]);
    const Real g = gate[i], u = up[i], d = dy[i];
    dgate[i] = d * u * (s.value + g * s.slope);
    dup[i] = d * g * s.value;
  }
}

ROWAN_VECTORIZED void add(const Real* a, const Real* b, Real* y, int64_t n) {
  ROWAN_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) y[i] = a[i] + b[i];
}

ROWAN_VECTORIZED void multiply(const Real* a, const Real* b, Real* y, int64_t n) {
  ROWAN_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) y[i] = a[i] * b[i];
}

ROWAN_VECTORIZED void accumulate(const Real* x, Real* y, int64_t n) {
  ROWAN_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) y[i] += x[i];
}

ROWAN_VECTORIZED void axpy(Real a, const Real* x, Real* y, int64_t n) {
  ROWAN_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) y[i] += a * x[i];
}

ROWAN_VECTORIZED void multiply_accumulate(const Real* a, const Real* b, Real* y, int64_t n) {
  ROWAN_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) y[i] += a[i] * b[i];
}

ROWAN_VECTORIZED void scale(Real factor, Real* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] *= factor;
}

}  // namespace rowan
