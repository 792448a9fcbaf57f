#include "train/config_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "core/nearest.h"
#include "train/file.h"

namespace rowan {
namespace {

using Kind = ConfigNode::Kind;

[[noreturn]] void fail_value(const std::string& where, FieldType type, const Limits& limits, const ConfigNode& node,
                             const std::string& hint = {}) {
  fail_config(where, fmt::format("must be {}, got {}", describe_expected(type, limits), describe_value(node)), hint);
}

std::string_view trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

// The whole of `text` as a number; std::from_chars never asks the locale. One leading '+' is fine, as in TOML.
template <class T>
bool parse_number(std::string_view text, T& value) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

bool looks_like_toml(std::string_view text, FieldType type) {
  const char last = text.empty() ? '\0' : text.back();
  const bool quoted = text.size() >= 2 && (text[0] == '"' || text[0] == '\'') && last == text[0];
  return quoted || (type == FieldType::kStringList && !text.empty() && text[0] == '[' && last == ']');
}

ConfigNode list_node(std::string_view text) {
  ConfigNode node;
  node.kind = Kind::kArray;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    ConfigNode item;
    item.kind = Kind::kString;
    item.text = trim(text.substr(0, comma));
    node.items.push_back(std::move(item));
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
  }
  return node;
}

// The text of an override as a value for a field of this type. What does not fit stays a string, and the field says so.
ConfigNode override_node(const ConfigOverride& given, FieldType type) {
  const std::string_view text = trim(given.value);
  if (looks_like_toml(text, type)) return parse_toml_value(text, "--set " + given.text);
  ConfigNode node;
  node.kind = Kind::kString;
  node.text = given.value;
  if (type == FieldType::kStringList) return list_node(text);
  if (type == FieldType::kString) return node;
  if (type == FieldType::kBool && (text == "true" || text == "false")) {
    node.kind = Kind::kBool;
    node.boolean = text == "true";
  } else if (parse_number(text, node.integer)) {
    node.kind = Kind::kInteger;
  } else if (parse_number(text, node.real)) {
    node.kind = Kind::kReal;
  }
  return node;
}

void check_text(const std::string& where, const std::string& text) {
  if (text.find('\0') != std::string::npos) fail_config(where, "must not hold the character U+0000");
}

}  // namespace

std::string normalize_key(std::string_view key) {
  std::string out;
  for (const char c : trim(key)) {
    if (c == '[') {
      out += '.';
    } else if (c != ']') {
      out += c;
    }
  }
  return out;
}

std::string read_config_file(const std::string& path) {
  try {
    return read_text(path, kMaxConfigBytes);
  } catch (const Error& e) {
    throw Error(fmt::format("[config] {}", escape_controls(message_of(e))), ErrorKind::kUsage, e.hint());
  }
}

void fail_config(const std::string& where, const std::string& message, const std::string& hint) {
  throw Error(fmt::format("[config] {}{}{}", where, where.empty() ? "" : " ", message), ErrorKind::kUsage, hint);
}

std::string message_of(const Error& error) {
  const std::string what = error.what();
  const size_t end = what.find("] ");
  return what.rfind("[", 0) == 0 && end != std::string::npos ? what.substr(end + 2) : what;
}

std::string place_text(const std::string& file, ConfigPlace place) {
  return fmt::format("{}:{}:{}", escape_controls(file), place.line, place.column);
}

std::vector<ConfigOverride> parse_overrides(const std::vector<std::string>& texts) {
  std::vector<ConfigOverride> overrides;
  for (const std::string& text : texts) {
    const std::string where = "--set " + escape_controls(text) + ":";
    if (!is_utf8(text)) fail_config(where, "must be UTF-8, because it is written into the run's config");
    const size_t equals = text.find('=');
    if (equals == std::string::npos) fail_config(where, "expected key=value, e.g. --set train.steps=100");
    const std::string key = normalize_key(std::string_view(text).substr(0, equals));
    if (key.empty()) fail_config(where, "the key before '=' is missing");
    overrides.push_back({escape_controls(text), key_path(key), key_leaf(key), text.substr(equals + 1)});
  }
  return overrides;
}

ConfigSources::ConfigSources(std::string file_name, std::vector<ConfigOverride> given)
    : file(std::move(file_name)), overrides(std::move(given)) {
  for (size_t i = 0; i < overrides.size(); ++i) by_path_[overrides[i].path].push_back(i);
}

const std::vector<size_t>& ConfigSources::overrides_of(const std::string& path) const {
  static const std::vector<size_t> kNone;
  const auto it = by_path_.find(path);
  return it == by_path_.end() ? kNone : it->second;
}

SectionReader::SectionReader(ConfigSources& sources, std::string path, const ConfigNode* table, std::vector<std::string> children,
                             std::string default_origin)
    : sources_(sources),
      path_(std::move(path)),
      table_(table),
      children_(std::move(children)),
      default_origin_(std::move(default_origin)) {}

const ConfigMember* SectionReader::find_in_file(const std::string& name, const std::vector<std::string>& spellings) const {
  const ConfigMember* found = nullptr;
  if (table_ == nullptr) return found;
  for (const ConfigMember& member : table_->members) {
    if (std::find(spellings.begin(), spellings.end(), member.key) == spellings.end()) continue;
    if (found != nullptr) {
      fail_config(place_text(sources_.file, member.place) + ":",
                  fmt::format("{} is another name of {}, which line {} sets as {}", member.key, join_key(path_, name),
                              found->place.line, found->key),
                  fmt::format("keep one of them, best {}", name));
    }
    found = &member;
  }
  return found;
}

ConfigOverride* SectionReader::find_override(const std::string& name, const std::vector<std::string>& spellings) const {
  ConfigOverride* found = nullptr;
  for (const size_t i : sources_.overrides_of(path_)) {
    ConfigOverride& given = sources_.overrides[i];
    if (std::find(spellings.begin(), spellings.end(), given.leaf) == spellings.end()) continue;
    if (found != nullptr && found->leaf != given.leaf) {
      fail_config("--set " + given.text + ":", fmt::format("{} is another name of {}, which --set {} sets as well", given.leaf,
                                                           join_key(path_, name), found->text));
    }
    given.used = true;
    found = &given;  // the last one counts
  }
  return found;
}

std::optional<SectionReader::Given> SectionReader::find(const std::string& name, FieldType type) {
  const std::string key = join_key(path_, name);
  std::vector<std::string> spellings = field_aliases(key);
  spellings.insert(spellings.begin(), name);
  seen_.insert(seen_.end(), spellings.begin(), spellings.end());
  const ConfigMember* member = find_in_file(name, spellings);
  const ConfigOverride* given = find_override(name, spellings);
  if (given != nullptr) {
    sources_.origin[key] = "command line";
    return Given{override_node(*given, type), "--set " + given->text + ": " + key};
  }
  if (member == nullptr) {
    sources_.origin[key] = default_origin_;
    return std::nullopt;
  }
  sources_.origin[key] = fmt::format("{}:{}", escape_controls(sources_.file), member->place.line);
  return Given{member->value, place_text(sources_.file, member->value.place) + ": " + key};
}

void SectionReader::operator()(const char* name, double& value, const char*, const Limits& limits) {
  const auto given = find(name, FieldType::kReal);
  if (!given) return;
  const bool whole = given->node.kind == Kind::kInteger;
  if (!whole && given->node.kind != Kind::kReal) fail_value(given->where, FieldType::kReal, limits, given->node);
  const double number = whole ? static_cast<double>(given->node.integer) : given->node.real;
  if (!within(number, limits)) fail_value(given->where, FieldType::kReal, limits, given->node);
  value = number;
}

void SectionReader::operator()(const char* name, int64_t& value, const char*, const Limits& limits) {
  const auto given = find(name, FieldType::kInteger);
  if (!given) return;
  if (given->node.kind == Kind::kReal) {
    const double real = given->node.real;
    const bool whole = std::fabs(real) < 1e15 && std::trunc(real) == real;
    fail_value(given->where, FieldType::kInteger, limits, given->node,
               whole ? fmt::format("write it without point or exponent: {}", static_cast<int64_t>(real)) : "");
  }
  if (given->node.kind != Kind::kInteger || !within(static_cast<double>(given->node.integer), limits)) {
    fail_value(given->where, FieldType::kInteger, limits, given->node);
  }
  value = given->node.integer;
}

void SectionReader::operator()(const char* name, bool& value, const char*) {
  const auto given = find(name, FieldType::kBool);
  if (!given) return;
  if (given->node.kind != Kind::kBool) fail_value(given->where, FieldType::kBool, {}, given->node);
  value = given->node.boolean;
}

void SectionReader::operator()(const char* name, std::string& value, const char*, const Limits& limits) {
  const auto given = find(name, FieldType::kString);
  if (!given) return;
  if (given->node.kind != Kind::kString) fail_value(given->where, FieldType::kString, limits, given->node);
  const std::vector<std::string>& choices = limits.choices;
  if (!choices.empty() && std::find(choices.begin(), choices.end(), given->node.text) == choices.end()) {
    const std::string near = nearest_name(given->node.text, choices);
    fail_value(given->where, FieldType::kString, limits, given->node,
               near.empty() ? "" : fmt::format("did you mean \"{}\"?", near));
  }
  check_text(given->where, given->node.text);
  value = given->node.text;
}

// One string is a list of one; "" is an empty list.
void SectionReader::operator()(const char* name, std::vector<std::string>& value, const char*) {
  auto given = find(name, FieldType::kStringList);
  if (!given) return;
  std::vector<ConfigNode> items;
  if (given->node.kind == Kind::kArray) {
    items = std::move(given->node.items);
  } else if (given->node.kind != Kind::kString) {
    fail_value(given->where, FieldType::kStringList, {}, given->node);
  } else if (!given->node.text.empty()) {
    items.push_back(given->node);
  }
  std::vector<std::string> texts;
  for (const ConfigNode& item : items) {
    if (item.kind != Kind::kString || item.text.empty()) {
      fail_config(given->where, fmt::format("must be an array of strings that are not empty, got {} in it", describe_value(item)));
    }
    check_text(given->where, item.text);
    texts.push_back(item.text);
  }
  value = std::move(texts);
}

bool SectionReader::has(const std::string& name) const {
  const auto names_it = [&](size_t i) { return sources_.overrides[i].leaf == name; };
  const bool in_file = table_ != nullptr && table_->find(name) != nullptr;
  const std::vector<size_t>& given = sources_.overrides_of(path_);
  return in_file || std::any_of(given.begin(), given.end(), names_it);
}

void SectionReader::finish(const KnownFields& known, const std::string& note) const {
  if (table_ == nullptr) return;
  for (const ConfigMember& member : table_->members) {
    const auto is_key = [&](const std::string& name) { return name == member.key; };
    if (std::any_of(seen_.begin(), seen_.end(), is_key) || std::any_of(children_.begin(), children_.end(), is_key)) continue;
    const std::string table = path_.empty() ? std::string("the top level") : fmt::format("[{}]", path_);
    fail_config(place_text(sources_.file, member.place) + ":",
                fmt::format("{} has no key {}{}", table, toml_quote(member.key), note),
                hint_for_unknown(path_, member.key, known()));
  }
}

}  // namespace rowan
