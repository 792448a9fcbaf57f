#include <toml++/toml.h>

#include "core/error.h"
#include "train/versions.h"

namespace rowan {

std::string toml_version() {
  return join_text(TOML_LIB_MAJOR, ".", TOML_LIB_MINOR, ".", TOML_LIB_PATCH);
}

}  // namespace rowan
