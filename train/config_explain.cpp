// The text of `rowan config explain`, from the same declarations that read a config.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/nearest.h"
#include "train/config.h"
#include "train/config_document.h"
#include "train/config_fields.h"

namespace rowan {
namespace {

std::string join(const std::vector<std::string>& items, const char* separator) {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "" : separator) + item;
  return text;
}

std::string field_text(const ConfigField& field) {
  std::string text = fmt::format("  {}\n", key_leaf(field.key));
  text += fmt::format("      {}\n", field.help);
  text += fmt::format("      {}; default {}\n", describe_expected(field.type, field.limits), field.value);
  const std::vector<std::string> aliases = field_aliases(field.key);
  if (!aliases.empty()) text += fmt::format("      also written {}\n", join(aliases, ", "));
  return text;
}

std::string section_text(const std::string& title, const std::string& help, const std::vector<ConfigField>& fields) {
  std::string text = help.empty() ? title + "\n" : fmt::format("{}  {}\n", title, help);
  for (const ConfigField& field : fields) text += field_text(field);
  return text;
}

std::string table_title(const ConfigSection& section) {
  return section.path.empty() ? "(top level)" : fmt::format("[{}]", section.path);
}

std::string table_text(const ConfigSection& section) {
  return section_text(table_title(section), section.path.empty() ? "" : section.help, section_fields(section));
}

// A rule's own fields, under the keys that explain knows them by: "optim.<rule>.<field>".
std::vector<ConfigField> rule_fields(const std::string& rule) {
  const auto optimizer = std::shared_ptr<Optimizer>(make_optimizer(rule));
  return section_fields({fmt::format("optim.{}", rule), "", [optimizer](FieldVisitor& v) { optimizer->visit(v); }});
}

std::string rule_text(const std::string& rule) {
  const std::unique_ptr<Optimizer> optimizer = make_optimizer(rule);
  const char* note = "";
  if (optimizer->sparse_only())
    note = "only for row-sparse parameters: an embedding that is not tied, learned positions, a sampled head";
  if (optimizer->whole_matrix()) note = "only for the matrices of blocks: vectors, embedding tables and the head take another rule";
  return section_text(fmt::format("[optim] rule = \"{}\"", rule), note, rule_fields(rule));
}

std::vector<ConfigField> group_fields() {
  OptimGroupConfig group;
  return section_fields({"optim.group", "", [&group](FieldVisitor& v) {
                           v("params", group.params, OptimGroupConfig::kParamsHelp);
                           group.visit(v);
                         }});
}

std::string group_text() {
  std::string text = "[[optim.group]]  parameters that another rule or other settings take; repeat it for each group\n";
  std::vector<ConfigField> fields = group_fields();
  fields[0].value = "none: it must be given";
  fields[1].value = "that of [optim], with [optim]'s values for what the group leaves out; with a rule named, that rule's defaults";
  for (const ConfigField& field : fields) text += field_text(field);
  return text;
}

std::string optim_text() {
  OptimGroupConfig group;
  std::string text = section_text("[optim]", "the rule for all parameters that no group takes",
                                  section_fields({"optim", "", [&group](FieldVisitor& v) { group.visit(v); }}));
  return text + "  and the fields of the rule: rowan config explain optim.<rule>\n";
}

std::string everything() {
  Config config;
  std::string text;
  for (const ConfigSection& section : config_sections(config)) text += table_text(section) + "\n";
  text += optim_text() + "\n" + group_text();
  for (const std::string& rule : optimizer_rules()) text += fmt::format("\n{}", rule_text(rule));
  return text;
}

// Everything that can be asked for, with its text.
std::vector<std::pair<std::string, std::string>> topics() {
  std::vector<std::pair<std::string, std::string>> all;
  const auto add_fields = [&](const std::vector<ConfigField>& fields, const std::string& title) {
    for (const ConfigField& field : fields) {
      all.emplace_back(field.key, title + "\n" + field_text(field));
      for (const std::string& alias : field_aliases(field.key)) {
        all.emplace_back(join_key(key_path(field.key), alias), title + "\n" + field_text(field));
      }
    }
  };
  Config config;
  for (const ConfigSection& section : config_sections(config)) {
    if (!section.path.empty()) all.emplace_back(section.path, table_text(section));
    add_fields(section_fields(section), table_title(section));
  }
  all.emplace_back("optim", optim_text());
  all.emplace_back("optim.rule", optim_text());
  all.emplace_back("optim.group", group_text());
  add_fields(group_fields(), "[[optim.group]]");
  for (const std::string& rule : optimizer_rules()) {
    all.emplace_back(fmt::format("optim.{}", rule), rule_text(rule));
    add_fields(rule_fields(rule), fmt::format("[optim] rule = \"{}\"", rule));
  }
  return all;
}

}  // namespace

std::string explain_config(const std::string& key) {
  if (key.empty()) return everything();
  std::string same_leaf;
  std::vector<std::string> names;
  for (const auto& [name, text] : topics()) {
    if (name == key) return text;
    if (key_leaf(name) == key) same_leaf += (same_leaf.empty() ? "" : "\n") + text;
    names.push_back(name);
  }
  if (!same_leaf.empty()) return same_leaf;
  std::string near = nearest_name(key, names);
  if (near.empty()) {
    std::vector<std::string> leaves;
    for (const std::string& name : names) leaves.push_back(key_leaf(name));
    near = nearest_name(key, leaves);
  }
  throw Error(fmt::format("[config] there is no key {}", toml_quote(key)), ErrorKind::kUsage,
              near.empty() ? "rowan config explain lists them all" : fmt::format("did you mean {}?", near));
}

}  // namespace rowan
