#include <hdf5.h>

#include "core/error.h"
#include "train/versions.h"

namespace rowan {

std::string hdf5_version() {
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  return join_text(major, ".", minor, ".", release);
}

}  // namespace rowan
