#include "core/kernels/versions.h"

#include <cblas.h>
#include <dnnl.h>

#include "core/error.h"

namespace rowan {

std::string openblas_version() {
  // "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH NO_AFFINITY Cooperlake MAX_THREADS=64": the name stands for itself.
  std::string config = openblas_get_config();
  const std::string name = "OpenBLAS ";
  if (config.rfind(name, 0) == 0) config.erase(0, name.size());
  while (!config.empty() && config.back() == ' ') config.pop_back();
  return config;
}

std::string onednn_version() {
  const dnnl_version_t& v = *dnnl_version();
  return join_text(v.major, ".", v.minor, ".", v.patch);
}

}  // namespace rowan
