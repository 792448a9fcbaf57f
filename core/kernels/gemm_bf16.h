// Matrix products with both operands rounded to bfloat16 (8 bits of mantissa, to nearest, ties to even) and sums in float32, by
// oneDNN's kernels for processors that multiply such numbers: AVX-512 BF16 or AMX.
#pragma once

#include "core/kernels/gemm_library.h"

namespace rowan {

// Whether this processor can, and the build is float.
bool bf16_available();

// Whether gemm_bf16() serves the call: alpha 1, beta 0 or 1, and large enough that rounding the operands does not cost more than
// it saves.
bool bf16_serves(const GemmCall& call);

// On the calling thread. Needs bf16_available() and bf16_serves(call).
void gemm_bf16(const GemmCall& call);

}  // namespace rowan
