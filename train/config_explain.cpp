// The text of `rowan config explain`, from the same declarations that read a config.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "core/error.h"
#include "core/nearest.h"
#include "train/config.h"
#include "train/config_document.h"
#include "train/config_fields.h"

namespace rowan {
namespace {

constexpr char kOptimHelp[] = "the rule for all parameters that no group takes";
constexpr char kGroupHelp[] = "parameters that another rule or other settings take; repeat it for each group";

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
  std::string text = fmt::format("[[optim.group]]  {}\n", kGroupHelp);
  std::vector<ConfigField> fields = group_fields();
  fields[0].value = "none: it must be given";
  fields[1].value = "that of [optim], with [optim]'s values for what the group leaves out; with a rule named, that rule's defaults";
  for (const ConfigField& field : fields) text += field_text(field);
  return text;
}

std::string optim_text() {
  OptimGroupConfig group;
  std::string text =
      section_text("[optim]", kOptimHelp, section_fields({"optim", "", [&group](FieldVisitor& v) { group.visit(v); }}));
  return text + "  and the fields of the rule: rowan config explain optim.<rule>\n";
}

// --- one line a field

constexpr size_t kLineWidth = 120;

const char* type_word(const ConfigField& field) {
  switch (field.type) {
    case FieldType::kReal:
      return "number";
    case FieldType::kInteger:
      return "integer";
    case FieldType::kBool:
      return "bool";
    case FieldType::kStringList:
      return "strings";
    case FieldType::kString:
      break;
  }
  return field.limits.choices.empty() ? "string" : "choice";
}

std::string field_line(const ConfigField& field) {
  std::string line = fmt::format("  {:<16} {:<8} {:<13} {}", key_leaf(field.key), type_word(field), field.value, field.help);
  if (line.size() > kLineWidth) line.erase(line.find_last_of(' ', kLineWidth - 4)).append(" ...");
  return line + "\n";
}

std::string table_lines(const ConfigSection& section) {
  std::string text = fmt::format("\n{}{}\n", table_title(section), section.path.empty() ? "" : "  " + section.help);
  for (const ConfigField& field : section_fields(section)) text += field_line(field);
  return text;
}

// Fields by name, with the number of rules that have them.
struct RuleField {
  ConfigField field;  // its default is "by rule" when that is not the same everywhere
  size_t rules = 0;
};

std::vector<RuleField> fields_of_rules(const std::vector<std::string>& rules) {
  std::vector<RuleField> all;
  for (const std::string& rule : rules) {
    for (const ConfigField& field : rule_fields(rule)) {
      const auto same = [&](const RuleField& known) { return key_leaf(known.field.key) == key_leaf(field.key); };
      const auto known = std::find_if(all.begin(), all.end(), same);
      if (known == all.end()) {
        all.push_back({field, 1});
        continue;
      }
      ++known->rules;
      if (known->field.value != field.value) known->field.value = "by rule";
    }
  }
  return all;
}

// Fields that most rules have stand once; behind each rule stand those that it has besides.
std::string rules_lines() {
  const std::vector<std::string> rules = optimizer_rules();
  std::vector<std::string> common;
  std::string text = "  and the fields of the rule; most rules have these:\n";
  for (const RuleField& known : fields_of_rules(rules)) {
    if (2 * known.rules <= rules.size()) continue;
    common.push_back(key_leaf(known.field.key));
    text += field_line(known.field);
  }
  text += "\nrules, and the fields that they have besides (rowan config explain optim.RULE)\n";
  for (const std::string& rule : rules) {
    std::vector<std::string> own;
    for (const ConfigField& field : rule_fields(rule)) {
      const std::string name = key_leaf(field.key);
      if (std::find(common.begin(), common.end(), name) == common.end()) own.push_back(name);
    }
    text += own.empty() ? fmt::format("  {}\n", rule) : fmt::format("  {:<26} {}\n", rule, join(own, ", "));
  }
  return text;
}

std::string overview() {
  Config config;
  std::string text = "Every field with its type, default and meaning. In full: rowan config explain KEY, TABLE or optim.RULE.\n";
  for (const ConfigSection& section : config_sections(config)) text += table_lines(section);
  text += fmt::format("\n[optim]  {}\n", kOptimHelp);
  for (const ConfigField& field : section_fields(optim_sections(config).front())) text += field_line(field);
  text += rules_lines() + fmt::format("\n[[optim.group]]  {}\n", kGroupHelp);
  std::vector<ConfigField> group = group_fields();
  group[0].value = "required";
  group[1].value = "[optim]'s";
  for (const ConfigField& field : group) text += field_line(field);
  return text;
}

// Something that can be asked for. Its text is made when it is.
struct Topic {
  std::string name;
  std::function<std::string()> text;
};

void add_topics(const std::vector<ConfigField>& fields, const std::string& title, std::vector<Topic>& topics) {
  for (const ConfigField& field : fields) {
    const auto text = [field, title] { return title + "\n" + field_text(field); };
    topics.push_back({field.key, text});
    for (const std::string& alias : field_aliases(field.key)) topics.push_back({join_key(key_path(field.key), alias), text});
  }
}

std::vector<Topic> all_topics() {
  std::vector<Topic> topics;
  const auto config = std::make_shared<Config>();
  for (const ConfigSection& section : config_sections(*config)) {
    if (!section.path.empty()) topics.push_back({section.path, [config, section] { return table_text(section); }});
    add_topics(section_fields(section), table_title(section), topics);
  }
  topics.push_back({"optim", optim_text});
  topics.push_back({"optim.rule", optim_text});
  topics.push_back({"optim.group", group_text});
  add_topics(group_fields(), "[[optim.group]]", topics);
  for (const std::string& rule : optimizer_rules()) {
    topics.push_back({fmt::format("optim.{}", rule), [rule] { return rule_text(rule); }});
    add_topics(rule_fields(rule), fmt::format("[optim] rule = \"{}\"", rule), topics);
  }
  return topics;
}

// Keys as configs write them: "optim.group.0.lr" and "optim.lr" are the rules' field lr, "optim.group.0" is a group.
std::string field_of_rules(const std::string& key) {
  constexpr std::string_view kOptim = "optim.", kGroup = "group";
  if (!key.starts_with(kOptim)) return "";
  std::string rest = key.substr(kOptim.size());
  if (rest.starts_with(kGroup)) {
    rest.erase(0, kGroup.size());
    const size_t after = rest.find_first_not_of("[]0123456789", rest.starts_with('.') ? 1 : 0);
    if (after == std::string::npos) return "optim.group";
    rest.erase(0, rest[after] == '.' ? after + 1 : after);
  }
  for (const std::string& rule : optimizer_rules())
    for (const ConfigField& field : rule_fields(rule))
      if (key_leaf(field.key) == rest) return rest;
  return "";
}

}  // namespace

std::string explain_everything() {
  Config config;
  std::string text;
  for (const ConfigSection& section : config_sections(config)) text += table_text(section) + "\n";
  text += optim_text() + "\n" + group_text();
  for (const std::string& rule : optimizer_rules()) text += fmt::format("\n{}", rule_text(rule));
  return text;
}

std::string explain_config(const std::string& key) {
  if (key.empty()) return overview();
  std::string same_leaf;
  std::vector<std::string> names;
  for (const Topic& topic : all_topics()) {
    if (topic.name == key) return topic.text();
    if (key_leaf(topic.name) == key) same_leaf += (same_leaf.empty() ? "" : "\n") + topic.text();
    names.push_back(topic.name);
  }
  if (!same_leaf.empty()) return same_leaf;
  if (const std::string field = field_of_rules(key); !field.empty()) return explain_config(field);
  std::string near = nearest_name(key, names);
  if (near.empty()) {
    std::vector<std::string> leaves;  // each once: the rules share most of theirs
    for (const std::string& name : names) {
      if (const std::string leaf = key_leaf(name); std::find(leaves.begin(), leaves.end(), leaf) == leaves.end())
        leaves.push_back(leaf);
    }
    near = nearest_name(key, leaves);
  }
  throw Error(fmt::format("[config] there is no key {}", toml_quote(key)), ErrorKind::kUsage,
              near.empty() ? "rowan config explain lists them all" : fmt::format("did you mean {}?", near));
}

}  // namespace rowan
