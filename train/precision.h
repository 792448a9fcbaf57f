// train.precision as what core/kernels/gemm multiplies in.
#pragma once

#include "core/kernels/gemm.h"
#include "train/config.h"

namespace rowan {

// Throws Error (a wrong config) when this machine or build cannot do what the config asks for.
MatmulPrecision training_precision(const Config& config);

}  // namespace rowan
