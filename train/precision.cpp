#include "train/precision.h"

#include "core/error.h"
#include "core/kernels/gemm_bf16.h"

namespace rowan {

MatmulPrecision training_precision(const Config& config) {
  if (config.train.precision == "float32") return MatmulPrecision::kFloat32;
  if (!bf16_available()) {
    throw Error(
        "[config] train.precision = \"bf16\" needs a processor that multiplies bfloat16 numbers (AVX-512 BF16 or AMX) and a build "
        "in "
        "single precision; this one cannot",
        ErrorKind::kUsage, "set train.precision = \"float32\"");
  }
  return MatmulPrecision::kBfloat16;
}

}  // namespace rowan
