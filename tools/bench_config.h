// The config of a benchmark that runs on random tokens.
#pragma once

#include <string>
#include <vector>

#include "train/config.h"

namespace rowan::tools {

// Loads a config with its vocabulary known. No corpus is needed: a char vocabulary that only a text could tell has the usual size,
// and a note on stderr says so.
Config bench_config(const std::string& path, const std::vector<std::string>& overrides);

}  // namespace rowan::tools
