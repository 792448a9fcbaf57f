// Reading of config fields from a TOML tree and from --set, typed by their declarations. Used by train/config.cpp alone.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/visit.h"
#include "train/config_document.h"
#include "train/config_fields.h"

namespace rowan {

// One --set.
struct ConfigOverride {
  std::string text;   // as given: "model.n_head=4"
  std::string path;   // "model"
  std::string leaf;   // "n_head", as spelled
  std::string value;  // "4"
  bool used = false;
};

// A field's key as the reader knows it: "optim.group.0.lr" of " optim.group[0].lr ".
std::string normalize_key(std::string_view key);

// Throws Error for what has no '=', no key, or is not UTF-8. Keys are normalized.
std::vector<ConfigOverride> parse_overrides(const std::vector<std::string>& texts);

struct ConfigSources {
  explicit ConfigSources(std::string file_name, std::vector<ConfigOverride> given = {});
  const std::vector<size_t>& overrides_of(const std::string& path) const;  // of the fields of that table, in order

  std::string file;  // for messages
  std::vector<ConfigOverride> overrides;
  std::map<std::string, std::string> origin;  // by full key

 private:
  std::map<std::string, std::vector<size_t>> by_path_;
};

// All fields, for hints; asked for when there is something to hint at.
using KnownFields = std::function<std::vector<ConfigField>()>;

// The text of a config file. What can't be read as one is a wrong argument (kUsage), whatever the reason.
std::string read_config_file(const std::string& path);
[[noreturn]] void fail_config(const std::string& where, const std::string& message, const std::string& hint = {});
// What an error of another part says, without the "[part] " before it.
std::string message_of(const Error& error);
std::string place_text(const std::string& file, ConfigPlace place);  // "file:line:column"

// Reads one table: visit a struct with it, then call finish().
class SectionReader final : public FieldVisitor {
 public:
  // `table` may be nullptr: the file has none. `children` are keys of the table that are tables of their own.
  SectionReader(ConfigSources& sources, std::string path, const ConfigNode* table, std::vector<std::string> children = {},
                std::string default_origin = "default");

  void operator()(const char* name, double& value, const char* help, const Limits& limits) override;
  void operator()(const char* name, int64_t& value, const char* help, const Limits& limits) override;
  void operator()(const char* name, bool& value, const char* help) override;
  void operator()(const char* name, std::string& value, const char* help, const Limits& limits) override;
  void operator()(const char* name, std::vector<std::string>& value, const char* help) override;

  // Whether the file or the command line gives this field.
  bool has(const std::string& name) const;
  // Throws for the first key of the table that no field has. `note` ends the message.
  void finish(const KnownFields& known, const std::string& note = {}) const;
  void finish(const std::vector<ConfigField>& known) const {
    finish([&] { return known; });
  }

 private:
  // A value that was given, and where messages say it stands.
  struct Given {
    ConfigNode node;
    std::string where;  // "file:1:2: model.n_head" or "--set model.n_head=4: model.n_head"
  };

  std::optional<Given> find(const std::string& name, FieldType type);
  const ConfigMember* find_in_file(const std::string& name, const std::vector<std::string>& spellings) const;
  ConfigOverride* find_override(const std::string& name, const std::vector<std::string>& spellings) const;

  ConfigSources& sources_;
  std::string path_;
  const ConfigNode* table_;
  std::vector<std::string> children_;
  std::string default_origin_;
  std::vector<std::string> seen_;  // spellings of the fields visited so far
};

}  // namespace rowan
