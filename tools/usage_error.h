// A command line that the parser refused, as a rowan::Error: what was wrong and, where one is likely, what was meant.
#pragma once

#include <CLI/CLI.hpp>

#include "core/error.h"

namespace rowan::tools {

Error usage_error(const CLI::App& app, const CLI::ParseError& error);

// For a command line without any command.
Error missing_command(const CLI::App& app);

}  // namespace rowan::tools
