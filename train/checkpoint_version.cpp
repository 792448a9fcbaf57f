#include "core/error.h"
#include "train/checkpoint_hdf5_handles.h"
#include "train/versions.h"

namespace rowan {

std::string hdf5_version() {
  const auto lock = hdf5_lock();
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  return join_text(major, ".", minor, ".", release);
}

}  // namespace rowan
