// Layer norm (Ba, Kiros, Hinton, 2016) and RMS norm (Zhang, Sennrich, 2019) over rows, single-threaded, without autograd.
//
//   layer norm:  y = (x - mean(x)) * rstd * weight + bias     rstd = 1 / sqrt(variance(x) + eps), variance over n, not n - 1
//   rms norm:    y = x * rstd * weight                        rstd = 1 / sqrt(mean(x^2) + eps)
//
// The backward functions write or add dx and always add dweight and dbias: callers give each piece of rows its own (width) sums.
#pragma once

#include <cstdint>

#include "core/real.h"

namespace rowan {

struct NormRows {
  const Real* x = nullptr;       // (rows, width)
  const Real* weight = nullptr;  // (width)
  int64_t rows = 0;
  int64_t width = 0;
};

// What backward needs of a row besides x.
struct NormStatistics {
  Real* mean = nullptr;  // (rows); unused by rms norm
  Real* rstd = nullptr;  // (rows)
};

// bias may be null.
void layer_norm_forward(const NormRows& in, const Real* bias, double eps, Real* y, const NormStatistics& out);
void rms_norm_forward(const NormRows& in, double eps, Real* y, const NormStatistics& out);

struct NormGrads {
  Real* dx = nullptr;         // (rows, width); null: not wanted
  bool overwrite_dx = false;  // = instead of +=
  Real* dweight = nullptr;    // (width) +=; null: not wanted
  Real* dbias = nullptr;      // (width) +=; null: not wanted
};

void layer_norm_backward(const NormRows& in, const NormStatistics& saved, const Real* dy, const NormGrads& out);
void rms_norm_backward(const NormRows& in, const NormStatistics& saved, const Real* dy, const NormGrads& out);

}  // namespace rowan
