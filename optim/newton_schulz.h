// Newton-Schulz iteration towards the nearest semi-orthogonal matrix: U V^T of a matrix's singular value decomposition U S V^T,
// without computing that.
//
//   X = G / (|G| + 1e-7), |G| the Frobenius norm          all singular values are then at most 1
//   steps times:  A = X X^T;  X = a X + (b A + c A A) X    a = 3.4445, b = -4.7750, c = 2.0315
//
// Each step maps every singular value s to a s + b s^3 + c s^5 and leaves the singular vectors as they are. The coefficients make
// small values grow as fast as possible (by 3.4445 a step), at the price that values do not converge to 1: five steps bring what
// began above 0.003 into [0.68, 1.21]. Jordan et al., "Muon: an optimizer for hidden layers in neural networks", 2024.
#pragma once

#include <cstdint>

#include "core/tensor.h"

namespace rowan {

// x (m,n) in place; a matrix of zeros stays. Multi-threaded, with the same bits for any number of threads. Needs as much memory as
// x once more, and twice min(m,n)^2. FLOPs: newton_schulz_flops().
void newton_schulz(Tensor& x, int64_t steps);

double newton_schulz_flops(const Shape& shape, int64_t steps);

}  // namespace rowan
