// The libraries that are linked into this build, by the versions they report at run time.
#pragma once

#include <string>
#include <vector>

namespace rowan {

struct LibraryVersion {
  std::string name;
  std::string version;
};

std::string rowan_version();  // "0.1.0"
// What decides the last bits of a result on this machine: the type of numbers, and the libraries with the kernels they picked.
std::string machine_text();
// "flushed to zero" or "kept": what the calling thread does with denormal numbers, which decides last bits as well. Within a
// Threads object (core/parallel.h) all threads do the same.
std::string denormals_text();
inline constexpr const char* kDenormalsFlushed = "flushed to zero";
std::string real_type();  // "float", or "double" in the gradcheck build
std::vector<LibraryVersion> library_versions();

// Each stands in the one part of train/ that may include its library.
std::string hdf5_version();  // train/checkpoint_version.cpp
std::string toml_version();  // train/config_version.cpp

}  // namespace rowan
