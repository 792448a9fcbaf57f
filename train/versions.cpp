#include "train/versions.h"

#include <type_traits>

#include "core/kernels/versions.h"
#include "core/parallel.h"
#include "core/real.h"

namespace rowan {

std::string rowan_version() {
  return ROWAN_VERSION;
}

std::string real_type() {
  return std::is_same_v<Real, double> ? "double" : "float";
}

std::string machine_text() {
  return real_type() + ", OpenBLAS " + openblas_version() + ", oneDNN " + onednn_version();
}

std::string denormals_text() {
  return flushes_denormals() ? kDenormalsFlushed : "kept";
}

std::vector<LibraryVersion> library_versions() {
  return {{"OpenBLAS", openblas_version()}, {"oneDNN", onednn_version()}, {"HDF5", hdf5_version()}, {"toml++", toml_version()}};
}

}  // namespace rowan
