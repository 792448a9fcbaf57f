#include "train/config_document.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>

#include "core/error.h"
#include "train/utf8.h"

namespace rowan {
namespace {

constexpr int kMaxKeyParts = 8;  // of one dotted key or table header

[[noreturn]] void fail_place(const std::string& name, ConfigPlace place, const std::string& message, const std::string& hint = {}) {
  throw Error(fmt::format("[config] {}:{}:{}: {}", escape_controls(name), place.line, place.column, message), ErrorKind::kUsage,
              hint);
}

// Walks over TOML text outside of strings and comments. The TOML library limits the nesting of values but not the parts of a dotted
// key, and frees its tables recursively: [a.a.a. ... .a] of 10^5 parts would overflow the stack.
class KeyDepthCheck {
 public:
  KeyDepthCheck(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  void run() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        skip_comment();
      } else if (c == '"' || c == '\'') {
        skip_string(c);
      } else {
        count(c);
        advance(1);
      }
    }
  }

 private:
  void count(char c) {
    if (c == '.') {
      if (++dots_ >= kMaxKeyParts) {
        fail_place(name_, {line_, column_}, fmt::format("a key has more than {} parts", kMaxKeyParts));
      }
    } else if (std::string_view("=,[]{}\n").find(c) != std::string_view::npos) {
      dots_ = 0;
    }
  }

  void advance(size_t n) {
    for (; n > 0 && at_ < text_.size(); --n, ++at_) {
      if (text_[at_] == '\n') {
        ++line_;
        column_ = 0;
      }
      if ((static_cast<unsigned char>(text_[at_]) & 0xC0) != 0x80) ++column_;
    }
  }

  void skip_comment() {
    while (at_ < text_.size() && text_[at_] != '\n') advance(1);
  }

  void skip_string(char quote) {
    const std::string triple(3, quote);
    const bool long_form = text_.substr(at_, 3) == triple;
    advance(long_form ? 3 : 1);
    while (at_ < text_.size()) {
      if (quote == '"' && text_[at_] == '\\') {
        advance(2);
      } else if (long_form ? text_.substr(at_, 3) == triple : text_[at_] == quote || text_[at_] == '\n') {
        advance(long_form ? 3 : 1);
        return;
      } else {
        advance(1);
      }
    }
  }

  std::string_view text_;
  const std::string& name_;
  size_t at_ = 0;
  int64_t line_ = 1;
  int64_t column_ = 1;
  int dots_ = 0;
};

ConfigPlace place_of(const toml::source_region& source) {
  return {static_cast<int64_t>(source.begin.line), static_cast<int64_t>(source.begin.column)};
}

ConfigNode convert(const toml::node& node);

void convert_table(const toml::table& table, ConfigNode& out) {
  for (const auto& [key, value] : table) {
    out.members.push_back({std::string(key.str()), place_of(key.source()), convert(value)});
  }
  // The library sorts by name; readers and messages follow the text.
  std::stable_sort(out.members.begin(), out.members.end(), [](const ConfigMember& a, const ConfigMember& b) {
    return std::pair(a.place.line, a.place.column) < std::pair(b.place.line, b.place.column);
  });
}

ConfigNode convert(const toml::node& node) {
  using Kind = ConfigNode::Kind;
  ConfigNode out;
  out.place = place_of(node.source());
  switch (node.type()) {
    case toml::node_type::table:
      out.kind = Kind::kTable;
      convert_table(*node.as_table(), out);
      break;
    case toml::node_type::array:
      out.kind = Kind::kArray;
      for (const toml::node& item : *node.as_array()) out.items.push_back(convert(item));
      break;
    case toml::node_type::string:
      out.kind = Kind::kString;
      out.text = node.as_string()->get();
      break;
    case toml::node_type::integer:
      out.kind = Kind::kInteger;
      out.integer = node.as_integer()->get();
      break;
    case toml::node_type::floating_point:
      out.kind = Kind::kReal;
      out.real = node.as_floating_point()->get();
      break;
    case toml::node_type::boolean:
      out.kind = Kind::kBool;
      out.boolean = node.as_boolean()->get();
      break;
    default:
      out.kind = Kind::kDate;
  }
  return out;
}

constexpr size_t kShownCharacters = 60;

// Long values are cut in messages, between characters.
std::string shorten(std::string_view text) {
  if (text.size() <= kShownCharacters) return std::string(text);
  size_t n = kShownCharacters;
  while (n > 0 && (static_cast<unsigned char>(text[n]) & 0xC0) == 0x80) --n;
  return std::string(text.substr(0, n)) + "...";
}

}  // namespace

const ConfigMember* ConfigNode::find(std::string_view key) const {
  for (const ConfigMember& member : members) {
    if (member.key == key) return &member;
  }
  return nullptr;
}

ConfigNode parse_toml(std::string_view text, const std::string& name) {
  if (static_cast<int64_t>(text.size()) > kMaxConfigBytes) {
    fail_place(name, {1, 1}, fmt::format("a config has at most {} bytes, got {}", kMaxConfigBytes, text.size()));
  }
  KeyDepthCheck(text, name).run();
  try {
    const toml::table table = toml::parse(text, std::string_view(name));
    ConfigNode root = convert(table);
    root.place = {1, 1};
    return root;
  } catch (const toml::parse_error& e) {
    fail_place(name, place_of(e.source()), "this is not TOML: " + escape_controls(shorten(e.description())));
  }
}

ConfigNode parse_toml_value(std::string_view text, const std::string& name) {
  const ConfigNode root = parse_toml("value = " + std::string(text), name);
  if (root.members.size() != 1 || root.members[0].key != "value") {
    fail_place(name, {1, 1}, "expected one value, got several lines");
  }
  return root.members[0].value;
}

std::string escape_controls(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80) {
      const Utf8Char next = read_utf8(text.substr(i));
      if (next.status != Utf8Char::Status::kOk) {  // a terminal of another encoding takes such bytes for controls
        out += fmt::format("\\x{:02X}", byte);
        continue;
      }
      if (next.code_point < 0xA0) {  // U+0080 to U+009F: U+009B begins sequences as ESC [ does
        out += fmt::format("\\u{:04X}", static_cast<unsigned>(next.code_point));
      } else {
        out += text.substr(i, static_cast<size_t>(next.length));
      }
      i += static_cast<size_t>(next.length) - 1;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\r') {
      out += "\\r";
    } else if (byte < 0x20 || byte == 0x7F) {
      out += fmt::format("\\u{:04X}", byte);
    } else {
      out += c;
    }
  }
  return out;
}

std::string toml_quote(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return '"' + escape_controls(escaped) + '"';
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const Utf8Char next = read_utf8(text);
    if (next.status != Utf8Char::Status::kOk) return false;
    text.remove_prefix(static_cast<size_t>(next.length));
  }
  return true;
}

std::string describe_value(const ConfigNode& node) {
  switch (node.kind) {
    case ConfigNode::Kind::kTable:
      return "a table";
    case ConfigNode::Kind::kArray:
      return "an array";
    case ConfigNode::Kind::kString:
      return "the string " + toml_quote(shorten(node.text));
    case ConfigNode::Kind::kInteger:
      return fmt::format("the integer {}", node.integer);
    case ConfigNode::Kind::kReal:
      return fmt::format("the number {}", node.real);
    case ConfigNode::Kind::kBool:
      return node.boolean ? "true" : "false";
    case ConfigNode::Kind::kDate:
      return "a date or time";
  }
  return "";  // not reached: every kind returns above
}

}  // namespace rowan
