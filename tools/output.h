// What commands print. Names of files, texts of checkpoints and configs, and reasons may hold control characters, which would
// rewrite the terminal or forge lines of output: whatever goes through here shows them as escapes (\n, \u001B). The text that a
// model writes does not: it is the result itself.
//
// A stdout that does not take the text is an Error (kData) with the system's reason, whether it shows now or when it is flushed at
// the end of the program.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "train/config_document.h"

namespace rowan::tools {

// Texts escaped, anything else as it is.
template <class T>
decltype(auto) shown(const T& value) {
  if constexpr (std::is_convertible_v<const T&, std::string_view>)
    return escape_controls(std::string_view(value));
  else
    return (value);
}
template <class T>
using Shown = decltype(shown(std::declval<const T&>()));

// To stdout. The format's own line ends stay.
template <class... Args>
void print(fmt::format_string<Shown<Args>...> format, const Args&... args) {
  fmt::print(stdout, format, shown(args)...);
}

// Text of several lines, whose line ends stay.
void print_text(std::string_view text);

// JSON. Text that is no UTF-8, as a path may be, is shown with replacement characters rather than refused. indent -1: one line.
void print_object(const nlohmann::ordered_json& json, int indent = -1);

// "rowan: warning: ..." on stderr, one line.
void warn(const std::string& message);

}  // namespace rowan::tools
