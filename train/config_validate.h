// What the checks of a whole config have in common. Internal to train/config_*.cpp.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "train/config.h"

namespace rowan {

// Error (kUsage): "[config] <where the keys' values came from>: message".
[[noreturn]] void fail_keys(const Config& config, const std::vector<std::string>& keys, const std::string& message,
                            const std::string& hint = {});

// The group that takes a parameter, as the optimizer set decides it: the first match, or [optim]; and its path, "optim.group.0".
std::pair<const OptimGroupConfig*, std::string> group_of(const Config& config, const std::string& parameter);

}  // namespace rowan
