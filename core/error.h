// Error: the only exception type for what a user, a file or a config can cause. Our own bugs are asserts.
//
//   ROWAN_CHECK(id >= 0 && id < v, "[embedding] id ", id, " at position ", i, " is outside [0, ", v, ")");
//
// A message says what was expected, what came, and where. Pass a hint when one fix is likely; tools print it on its own line.
#pragma once

#include <cassert>
#include <locale>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

namespace rowan {

enum class ErrorKind {
  kUsage,      // wrong command line, config, or argument to a function: exit code 2
  kData,       // a file, the data in it, or the device: exit code 1
  kNonFinite,  // training stopped because a loss or a gradient was not finite: exit code 3
};

class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, ErrorKind kind = ErrorKind::kUsage, std::string hint = {})
      : std::runtime_error(message), kind_(kind), hint_(std::move(hint)) {}

  ErrorKind kind() const { return kind_; }
  const std::string& hint() const { return hint_; }

 private:
  ErrorKind kind_;
  std::string hint_;
};

// Joins its arguments as an ostream prints them, in the classic locale whatever the process has set.
template <class... Parts>
std::string join_text(const Parts&... parts) {
  std::ostringstream out;
  out.imbue(std::locale::classic());
  (out << ... << parts);
  return out.str();
}

template <class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  throw Error(join_text(parts...));
}

template <class... Parts>
[[noreturn]] void fail_data(const Parts&... parts) {
  throw Error(join_text(parts...), ErrorKind::kData);
}

}  // namespace rowan

// The message is only built when the condition fails.
#define ROWAN_CHECK(condition, ...) \
  do {                              \
    if (!(condition)) [[unlikely]]  \
      ::rowan::fail(__VA_ARGS__);   \
  } while (false)

// For our own bugs, in the inner loops too: on in builds with assertions.
#define ROWAN_ASSERT(condition) assert(condition)
