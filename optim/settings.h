// An optimizer's settings as text: for the table at start, for reports, and for checkpoints, where they are part of the state.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "optim/optimizer.h"

namespace rowan {

using Settings = std::vector<std::pair<std::string, std::string>>;  // field, value; in the order of visit()

// Numbers are written as the shortest text that reads back to the same bits.
Settings settings_of(Optimizer& optimizer);
std::string settings_line(const Settings& settings);  // "lr=0.001 weight_decay=0.1 ..."

// One "name=value" a line, and back. Values hold no line ends.
std::string write_settings(const Settings& settings);
// Sets every field of the optimizer. Throws Error (kData) for a name that is missing, unknown, has another type or a value
// out of its range, and for settings that validate() refuses, changing nothing.
void read_settings(Optimizer& optimizer, const std::string& text);

}  // namespace rowan
