// What the checks of a whole config have in common. Internal to train/config_*.cpp and the sweep of a comparison.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "layers/parameter_specs.h"
#include "train/config.h"

namespace rowan {

// Error (kUsage): "[config] <where the keys' values came from>: message".
[[noreturn]] void fail_keys(const Config& config, const std::vector<std::string>& keys, const std::string& message,
                            const std::string& hint = {});

// The group that takes a parameter, as the optimizer set decides it: the first match, or [optim]; and its path, "optim.group.0".
std::pair<const OptimGroupConfig*, std::string> group_of(const Config& config, const std::string& parameter);

// The parameters in the state after `step` steps, also where the vocabulary is not known yet.
std::vector<ParameterSpec> specs_at(const Config& config, int64_t step);

// Error for a rule that can't serve a parameter that it takes. Part of validate().
void check_rules(const Config& config);
// Error for a group that takes no parameter. Part of check_no_idle_settings().
void check_no_empty_group(const Config& config);

// Fields outside of [optim] whose switch is off: the part of idle_settings() that is said and not refused.
std::vector<IdleSetting> idle_fields(const Config& config);

// What a name of a run or a sweep, which names its directory, must be.
bool names_a_directory(const std::string& name);
inline constexpr const char* kDirectoryName =
    "name must be usable as a directory's name: not empty, UTF-8, without '/' and control characters";

}  // namespace rowan
