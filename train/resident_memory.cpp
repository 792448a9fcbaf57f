#include "train/resident_memory.h"

#include <malloc.h>
#include <sys/resource.h>

#include <cstdio>
#include <fstream>
#include <string>

namespace rowan {

// Not getrusage() alone: what it counts goes on over an exec, so that a large program that starts this one would show in it.
int64_t peak_rss_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    long long kilobytes = 0;
    if (std::sscanf(line.c_str(), "VmHWM: %lld kB", &kilobytes) == 1) return int64_t{kilobytes} * 1024;
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;
}

void reset_peak_rss() {
#ifdef __GLIBC__
  malloc_trim(0);  // what was given back and is still resident
#endif
  std::ofstream("/proc/self/clear_refs") << "5";  // proc(5): resets VmHWM
}

}  // namespace rowan
