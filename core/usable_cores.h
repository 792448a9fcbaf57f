// What a container allows of the processor. usable_cores() in core/parallel.h takes it into account.
#pragma once

#include <string>

namespace rowan {

// Whole cores by the quotas of the control groups that this process is in, at least 1: cpu.max of version 2 and cpu.cfs_quota_us of
// version 1, of its own group and of all above it. INT_MAX without a quota. `root` is where /proc and /sys are looked for.
int cgroup_cores(const std::string& root = "");

}  // namespace rowan
