// ConfigNode: a TOML text as a plain tree with places. The only door between Rowan and the TOML library, so that nothing else
// depends on it, and the one place that makes hostile text harmless: size, nesting and encoding are checked here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rowan {

// A config is a page of text; the limit keeps parsing quick whatever the file is.
inline constexpr int64_t kMaxConfigBytes = int64_t{1} << 20;

struct ConfigPlace {
  int64_t line = 0;    // from 1
  int64_t column = 0;  // from 1, in characters
};

struct ConfigMember;

struct ConfigNode {
  enum class Kind { kTable, kArray, kString, kInteger, kReal, kBool, kDate };

  Kind kind = Kind::kTable;
  ConfigPlace place;
  std::string text;                   // kString
  int64_t integer = 0;                // kInteger
  double real = 0;                    // kReal
  bool boolean = false;               // kBool
  std::vector<ConfigNode> items;      // kArray
  std::vector<ConfigMember> members;  // kTable, in the order of the text

  const ConfigMember* find(std::string_view key) const;  // nullptr when absent
};

struct ConfigMember {
  std::string key;
  ConfigPlace place;  // of the key
  ConfigNode value;
};

// Parses a whole document. `name` stands for it in messages. Throws Error (kUsage) "[config] name:line:column: ..." for what is
// not TOML 1.0, not UTF-8, longer than kMaxConfigBytes, or nested deeper than a config can be.
ConfigNode parse_toml(std::string_view text, const std::string& name);

// Parses one value, e.g. ["a", "b"] or "line\n". Throws as parse_toml does.
ConfigNode parse_toml_value(std::string_view text, const std::string& name);

// `text` as a TOML basic string, quotes included: no control character (U+0000 to U+001F, U+007F to U+009F) is left in it.
std::string toml_quote(std::string_view text);
// Control characters as the same escapes, without quotes: for comments, messages and whatever reaches a terminal.
std::string escape_controls(std::string_view text);
bool is_utf8(std::string_view text);

// What a message says about a value that is not what was expected: `the string "four"`, `the integer 4`, `a table`.
std::string describe_value(const ConfigNode& node);

}  // namespace rowan
