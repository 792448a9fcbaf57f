// Config fields as data: what every reader, printer and message about a config shares. All of it comes from the visit() of the
// structs in train/config.h and of the optimizers; no field is named here.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/visit.h"
#include "train/config.h"
#include "train/config_document.h"

namespace rowan {

enum class FieldType { kReal, kInteger, kBool, kString, kStringList };

struct ConfigField {
  std::string key;  // "model.rope.theta", "optim.group.0.lr"
  FieldType type = FieldType::kReal;
  std::string value;  // as TOML: 0.001, "cosine", ["a.txt"]
  std::string help;
  Limits limits;
};

// One table of a config and its fields. The path is "" for the top level.
struct ConfigSection {
  std::string path;
  std::string help;
  std::function<void(FieldVisitor&)> visit;
};

// Every table but [optim] and [[optim.group]], whose fields depend on their rule. The sections refer to `config`.
std::vector<ConfigSection> config_sections(Config& config);
// [optim], then [[optim.group]] in order. The sections refer to `config`.
std::vector<ConfigSection> optim_sections(Config& config);

std::vector<ConfigField> section_fields(const ConfigSection& section);
// Every field with its value, in the order of the declaration.
std::vector<ConfigField> config_fields(const Config& config);

// "train.schedule" + "kind"; the top level has no prefix.
std::string join_key(const std::string& path, const std::string& name);
std::string key_path(const std::string& key);  // "train.schedule" of "train.schedule.kind", "" of "name"
std::string key_leaf(const std::string& key);  // "kind"

// Spellings accepted for a field of [model] besides its own.
std::vector<std::string> field_aliases(const std::string& key);

// The TOML text of a value; numbers are the shortest that read back to the same bits.
std::string toml_text(double value);
std::string toml_text(int64_t value);
std::string toml_text(bool value);
std::string toml_text(const std::string& value);
std::string toml_text(const std::vector<std::string>& value);
std::string toml_text(const ConfigNode& value);  // a number, true or false; no other kind

// "an integer from 1 to 1024", "a number above 0", "one of \"half\", \"interleaved\"".
std::string describe_expected(FieldType type, const Limits& limits);

// A hint for an unknown `name` in table `path`: the field that was likely meant, wherever it stands; "" when there is none.
std::string hint_for_unknown(const std::string& path, const std::string& name, const std::vector<ConfigField>& known);

}  // namespace rowan
