// Memory that this process has in RAM, as the kernel counts it.
#pragma once

#include <cstdint>

namespace rowan {

// The most memory that this program has had resident since it was started, or since reset_peak_rss(). What started it does not
// count where /proc/self/status says so (Linux); reset_peak_rss() does nothing where the system does not offer it.
int64_t peak_rss_bytes();
void reset_peak_rss();

}  // namespace rowan
