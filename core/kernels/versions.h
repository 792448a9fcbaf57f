// What the matrix-multiply libraries say of themselves, for `rowan --version`.
#pragma once

#include <string>

namespace rowan {

std::string openblas_version();  // its build configuration and the kernels it picked on this machine
std::string onednn_version();    // "2.6.3"

}  // namespace rowan
