#include "train/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <utility>

#include "core/error.h"
#include "optim/settings.h"
#include "train/config_document.h"
#include "train/config_fields.h"
#include "train/config_reader.h"

namespace rowan {
namespace {

using Kind = ConfigNode::Kind;

// The table at a path such as "train.schedule"; nullptr when the text has none. Throws when something else stands there.
const ConfigNode* find_table(const ConfigNode& root, const std::string& path, const std::string& file) {
  const ConfigNode* table = &root;
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    const ConfigMember* member = table->find(path.substr(begin, end - begin));
    if (member == nullptr) return nullptr;
    if (member->value.kind != Kind::kTable) {
      fail_config(place_text(file, member->place) + ":", fmt::format("{0} is a table of settings: expected [{0}], got {1}",
                                                                     path.substr(0, end), describe_value(member->value)));
    }
    table = &member->value;
    begin = end + 1;
  }
  return table;
}

// Keys of a section that are sections of their own.
std::vector<std::string> child_tables(const std::string& path, const std::vector<ConfigSection>& sections) {
  std::vector<std::string> children;
  for (const ConfigSection& section : sections) {
    if (!section.path.empty() && key_path(section.path) == path) children.push_back(key_leaf(section.path));
  }
  if (path.empty()) children.emplace_back("optim");
  return children;
}

// Fields of a config that says nothing, for hints.
std::vector<ConfigField> default_fields() {
  Config config;
  config.optim.optimizer = make_optimizer(config.optim.rule);
  return config_fields(config);
}

struct RuleReader {
  ConfigSources& sources;
  const KnownFields& outside;  // [optim]

  void read(OptimGroupConfig& group, const std::string& path, const ConfigNode* table, const OptimGroupConfig* base) const;
  void check(const OptimGroupConfig& group, const std::string& path, const ConfigNode* table) const;
};

// `base` is [optim] for a group: what a group without a rule of its own goes by.
void RuleReader::read(OptimGroupConfig& group, const std::string& path, const ConfigNode* table,
                      const OptimGroupConfig* base) const {
  const bool inherits = base != nullptr && !SectionReader(sources, path, table).has("rule");
  std::vector<std::string> children;
  if (base == nullptr) children.emplace_back("group");
  SectionReader reader(sources, path, table, children, inherits ? "[optim]" : "default");
  if (base != nullptr) {
    const std::string where = table != nullptr ? place_text(sources.file, table->place) + ":" : "--set:";
    if (!reader.has("params"))
      fail_config(where, path + ".params is missing: the parameters that the group takes", "e.g. params = \"embed.*\"");
    reader("params", group.params, OptimGroupConfig::kParamsHelp, {});
  }
  if (inherits) group.rule = base->rule;
  group.visit(reader);
  group.optimizer = make_optimizer(group.rule);
  if (inherits) read_settings(*group.optimizer, write_settings(settings_of(*base->optimizer)));
  group.optimizer->visit(reader);

  const auto known = [&] {
    std::vector<ConfigField> fields = outside();
    const ConfigSection section{path, "", [&](FieldVisitor& v) {
                                  if (base != nullptr) v("params", group.params, OptimGroupConfig::kParamsHelp);
                                  group.visit(v);
                                  group.optimizer->visit(v);
                                }};
    for (ConfigField& field : section_fields(section)) fields.push_back(std::move(field));
    return fields;
  };
  reader.finish(known, fmt::format(" (rule \"{}\", {})", group.rule, sources.origin[join_key(path, "rule")]));
  check(group, path, table);
}

void RuleReader::check(const OptimGroupConfig& group, const std::string& path, const ConfigNode* table) const {
  try {
    group.optimizer->validate();
  } catch (const Error& e) {
    std::string where = table != nullptr ? place_text(sources.file, table->place) : "";
    const auto given = [&](const auto& origin) { return origin.first.starts_with(path + ".") && origin.second == "command line"; };
    if (std::any_of(sources.origin.begin(), sources.origin.end(), given))
      where += where.empty() ? "command line" : ", command line";
    if (!where.empty()) where += ": ";
    fail_config(where + path + ":", message_of(e), e.hint());
  }
}

// The number of groups: those of the file, and the one after the last when --set speaks of it.
size_t count_groups(const ConfigSources& sources, size_t in_file) {
  size_t count = in_file;
  const std::string prefix = "optim.group.";
  for (const ConfigOverride& given : sources.overrides) {
    if (given.path.rfind(prefix, 0) != 0) continue;
    const std::string number = given.path.substr(prefix.size());
    size_t index = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), index);
    const bool whole = error == std::errc{} && end == number.data() + number.size();
    if (!whole || index > count) {
      fail_config("--set " + given.text + ":",
                  fmt::format("groups are numbered from 0, and the next one is {}, got \"{}\"", count, number));
    }
    if (index == count) ++count;
  }
  return count;
}

void read_optim(const ConfigNode& root, ConfigSources& sources, const KnownFields& outside, Config& config) {
  const ConfigNode* table = find_table(root, "optim", sources.file);
  const RuleReader rules{sources, outside};
  rules.read(config.optim, "optim", table, nullptr);
  const ConfigMember* list = table == nullptr ? nullptr : table->find("group");
  std::vector<ConfigNode> groups;
  if (list != nullptr) {
    const auto is_table = [](const ConfigNode& item) { return item.kind == Kind::kTable; };
    if (list->value.kind != Kind::kArray || !std::all_of(list->value.items.begin(), list->value.items.end(), is_table)) {
      fail_config(place_text(sources.file, list->place) + ":",
                  "optim.group is a list of tables, got " + describe_value(list->value), "write [[optim.group]] above each group");
    }
    groups = list->value.items;
  }
  const size_t count = count_groups(sources, groups.size());
  config.groups.resize(count);
  for (size_t i = 0; i < count; ++i) {
    rules.read(config.groups[i], fmt::format("optim.group.{}", i), i < groups.size() ? &groups[i] : nullptr, &config.optim);
  }
}

void check_overrides_used(const ConfigSources& sources, const Config& config) {
  for (const ConfigOverride& given : sources.overrides) {
    if (given.used) continue;
    const std::string key = join_key(given.path, given.leaf);
    fail_config("--set " + given.text + ":", fmt::format("there is no key {}", toml_quote(key)),
                hint_for_unknown(given.path, given.leaf, config_fields(config)));
  }
}

}  // namespace

Config parse_config(const std::string& text, const std::string& name, const std::vector<std::string>& overrides) {
  ConfigSources sources(name, parse_overrides(overrides));
  const ConfigNode root = parse_toml(text, name);
  Config config;
  config.name = std::filesystem::path(name).stem().string();
  std::vector<ConfigSection> sections = config_sections(config);
  const KnownFields outside_optim = [&] {
    std::vector<ConfigField> fields;
    for (const ConfigSection& section : sections) {
      for (ConfigField& field : section_fields(section)) fields.push_back(std::move(field));
    }
    return fields;
  };
  for (const ConfigSection& section : sections) {
    SectionReader reader(sources, section.path, find_table(root, section.path, name), child_tables(section.path, sections));
    section.visit(reader);
    reader.finish(default_fields);
  }
  read_optim(root, sources, outside_optim, config);
  check_overrides_used(sources, config);
  config.origin = std::move(sources.origin);
  validate(config);
  return config;
}

Config load_config(const std::string& path, const std::vector<std::string>& overrides) {
  return parse_config(read_config_file(path), path, overrides);
}

}  // namespace rowan
