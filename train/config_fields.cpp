#include "train/config_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "core/nearest.h"

namespace rowan {
namespace {

struct Synonym {
  const char* name;
  const char* field;
};

// Names that the field uses for the same thing: accepted in [model].
constexpr Synonym kAliases[] = {
    {"n_embd", "d_model"},
    {"hidden_size", "d_model"},
    {"dim", "d_model"},
    {"C", "d_model"},
    {"block_size", "max_seq_len"},
    {"n_ctx", "max_seq_len"},
    {"n_positions", "max_seq_len"},
    {"max_position_embeddings", "max_seq_len"},
    {"n_layers", "n_layer"},
    {"num_hidden_layers", "n_layer"},
    {"num_attention_heads", "n_head"},
    {"n_heads", "n_head"},
    {"num_key_value_heads", "n_kv_head"},
    {"n_kv_heads", "n_kv_head"},
    {"intermediate_size", "d_ff"},
    {"hidden_dim", "d_ff"},
};

// Names that other trainers use for settings outside [model]: not accepted, but worth a hint.
constexpr Synonym kForeignNames[] = {
    {"learning_rate", "optim.lr"},
    {"max_lr", "optim.lr"},
    {"optimizer", "optim.rule"},
    {"max_iters", "train.steps"},
    {"max_steps", "train.steps"},
    {"num_steps", "train.steps"},
    {"lr_decay_iters", "train.schedule.decay_steps"},
    {"warmup_iters", "train.schedule.warmup"},
    {"warmup_steps", "train.schedule.warmup"},
    {"min_lr", "train.schedule.min_ratio"},
    {"gradient_accumulation_steps", "train.grad_accum"},
    {"grad_clip", "train.clip_norm"},
    {"max_grad_norm", "train.clip_norm"},
    {"eval_interval", "train.eval_every"},
    {"log_interval", "train.log_every"},
    {"save_every", "checkpoint.every"},
    {"tie_word_embeddings", "model.tied"},
    {"rope_theta", "model.rope.theta"},
    {"rms_norm_eps", "model.norm_eps"},
    {"n_vocab", "model.vocab_size"},
    {"context_length", "data.seq_len"},
};

struct ListVisitor final : FieldVisitor {
  explicit ListVisitor(std::string p) : path(std::move(p)) {}

  void operator()(const char* name, double& value, const char* help, const Limits& limits) override {
    fields.push_back({join_key(path, name), FieldType::kReal, toml_text(value), help, limits});
  }
  void operator()(const char* name, int64_t& value, const char* help, const Limits& limits) override {
    fields.push_back({join_key(path, name), FieldType::kInteger, toml_text(value), help, limits});
  }
  void operator()(const char* name, bool& value, const char* help) override {
    fields.push_back({join_key(path, name), FieldType::kBool, toml_text(value), help, {}});
  }
  void operator()(const char* name, std::string& value, const char* help, const Limits& limits) override {
    fields.push_back({join_key(path, name), FieldType::kString, toml_text(value), help, limits});
  }
  void operator()(const char* name, std::vector<std::string>& value, const char* help) override {
    fields.push_back({join_key(path, name), FieldType::kStringList, toml_text(value), help, {}});
  }

  std::string path;
  std::vector<ConfigField> fields;
};

std::string describe_range(const Limits& l) {
  const bool low = std::isfinite(l.low);
  const bool high = std::isfinite(l.high);
  if (low && high) {
    const char* to = l.high_open ? " to below " : " to ";
    return l.low_open ? fmt::format(" above {}, up to{}{}", l.low, l.high_open ? " below " : " ", l.high)
                      : fmt::format(" from {}{}{}", l.low, to, l.high);
  }
  if (low) return fmt::format(" {} {}", l.low_open ? "above" : "of at least", l.low);
  if (high) return fmt::format(" {} {}", l.high_open ? "below" : "of at most", l.high);
  return "";
}

}  // namespace

std::vector<ConfigSection> config_sections(Config& config) {
  const auto section = [](std::string path, std::string help, auto& part) {
    return ConfigSection{std::move(path), std::move(help), [&part](FieldVisitor& v) { part.visit(v); }};
  };
  return {
      section("", "top level", config),
      section("model", "shape of the model", config.model),
      section("model.rope", "rotary positions, with positions = \"rope\"", config.model.rope),
      section("data", "what is read, and in which order", config.data),
      section("data.zipf", "made-up data with known answers, with train = \"builtin:zipf\"", config.data.zipf),
      section("train", "the loop", config.train),
      section("train.schedule", "the learning rate over time; every rule's lr is multiplied by it", config.train.schedule),
      section("train.sampled", "what train.loss = \"sampled\" draws", config.train.sampled),
      section("train.spike", "what counts as a loss that went wrong, and what to do then", config.train.spike),
      section("checkpoint", "when the state is saved and what is kept", config.checkpoint),
  };
}

std::vector<ConfigSection> optim_sections(Config& config) {
  std::vector<ConfigSection> sections;
  const auto fields_of = [](OptimGroupConfig& group, FieldVisitor& v) {
    group.visit(v);
    if (group.optimizer) group.optimizer->visit(v);
  };
  sections.push_back({"optim", "", [&config, fields_of](FieldVisitor& v) { fields_of(config.optim, v); }});
  for (size_t i = 0; i < config.groups.size(); ++i) {
    OptimGroupConfig& group = config.groups[i];
    sections.push_back({fmt::format("optim.group.{}", i), "", [&group, fields_of](FieldVisitor& v) {
                          v("params", group.params, OptimGroupConfig::kParamsHelp);
                          fields_of(group, v);
                        }});
  }
  return sections;
}

std::vector<ConfigField> section_fields(const ConfigSection& section) {
  ListVisitor list(section.path);
  section.visit(list);
  return std::move(list.fields);
}

std::vector<ConfigField> config_fields(const Config& config) {
  Config copy = config;  // visit() serves reading and writing alike, so it asks for a mutable object
  std::vector<ConfigField> fields;
  for (const auto& sections : {config_sections(copy), optim_sections(copy)}) {
    for (const ConfigSection& section : sections) {
      for (ConfigField& field : section_fields(section)) fields.push_back(std::move(field));
    }
  }
  return fields;
}

std::string join_key(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "." + name;
}

std::string key_path(const std::string& key) {
  const size_t dot = key.rfind('.');
  return dot == std::string::npos ? "" : key.substr(0, dot);
}

std::string key_leaf(const std::string& key) {
  return key.substr(key.rfind('.') + 1);
}

std::vector<std::string> field_aliases(const std::string& key) {
  std::vector<std::string> aliases;
  if (key_path(key) != "model") return aliases;
  for (const Synonym& alias : kAliases) {
    if (key_leaf(key) == alias.field) aliases.emplace_back(alias.name);
  }
  return aliases;
}

std::string toml_text(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";  // stays a real when read without the declaration
  return text;
}

std::string toml_text(int64_t value) {
  return fmt::format("{}", value);
}

std::string toml_text(bool value) {
  return value ? "true" : "false";
}

std::string toml_text(const std::string& value) {
  return toml_quote(value);
}

std::string toml_text(const std::vector<std::string>& value) {
  std::string text;
  for (const std::string& item : value) text += (text.empty() ? "" : ", ") + toml_quote(item);
  return fmt::format("[{}]", text);
}

std::string toml_text(const ConfigNode& value) {
  if (value.kind == ConfigNode::Kind::kInteger) return toml_text(value.integer);
  if (value.kind == ConfigNode::Kind::kReal) return toml_text(value.real);
  ROWAN_ASSERT(value.kind == ConfigNode::Kind::kBool);
  return toml_text(value.boolean);
}

std::string describe_expected(FieldType type, const Limits& limits) {
  switch (type) {
    case FieldType::kReal:
      return "a number" + describe_range(limits);
    case FieldType::kInteger:
      return "an integer" + describe_range(limits);
    case FieldType::kBool:
      return "true or false";
    case FieldType::kStringList:
      return "a string or an array of strings";
    case FieldType::kString:
      break;
  }
  if (limits.choices.empty()) return "a string";
  std::string choices;
  for (const std::string& choice : limits.choices) choices += (choices.empty() ? "" : ", ") + toml_quote(choice);
  return "one of " + choices;
}

std::string hint_for_unknown(const std::string& path, const std::string& name, const std::vector<ConfigField>& known) {
  for (const Synonym& foreign : kForeignNames) {
    if (name == foreign.name) return fmt::format("here it is called {}", foreign.field);
  }
  const std::string prefix = path.empty() ? "" : path + ".";
  std::vector<std::string> here;    // fields and tables of this table
  std::vector<std::string> leaves;  // of all fields
  for (const ConfigField& field : known) {
    leaves.push_back(key_leaf(field.key));
    if (leaves.back() == name) return fmt::format("{} stands in [{}]", name, key_path(field.key));
    if (field.key.rfind(prefix, 0) == 0)
      here.push_back(field.key.substr(prefix.size(), field.key.find('.', prefix.size()) - prefix.size()));
    if (key_path(field.key) != path) continue;
    for (const std::string& alias : field_aliases(field.key)) here.push_back(alias);
  }
  if (std::find(here.begin(), here.end(), name) != here.end()) {
    return fmt::format("{0} is a table; rowan config explain {0} lists its keys", join_key(path, name));
  }
  if (const std::string near = nearest_name(name, here); !near.empty())
    return fmt::format("did you mean {}?", join_key(path, near));
  const std::string near = nearest_name(name, leaves);
  const auto is_near = [&](const ConfigField& field) { return key_leaf(field.key) == near; };
  const auto field = std::find_if(known.begin(), known.end(), is_near);
  return near.empty() || field == known.end() ? "" : fmt::format("did you mean {}?", field->key);
}

}  // namespace rowan
