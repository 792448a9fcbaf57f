// Fields that act only while another one has a certain value. A base config keeps their values for its variants, so that they are
// said and not refused; those of [optim], which comparisons are about, are in config_idle.cpp.
#include <fmt/format.h>

#include <algorithm>

#include "train/builtin_data.h"
#include "train/config_fields.h"
#include "train/config_validate.h"

namespace rowan {
namespace {

struct Switched {
  const char* key;  // a field, or a table with a dot at its end
  const char* by;   // the field that switches it off
  bool (*off)(const Config&);
};

bool is_made_up(const Config& c) {
  return !builtin_of(c.data).empty();
}
bool no_bursts(const Config& c) {
  return c.data.zipf.burst_every == 0;
}
bool no_spikes(const Config& c) {
  return c.train.spike.window == 0;
}
bool stays_constant(const Config& c) {
  return c.train.schedule.kind == "constant";
}

// The first that fits a key is the one that is told.
constexpr Switched kSwitched[] = {
    {"model.rope.", "model.positions", [](const Config& c) { return c.model.positions != "rope"; }},
    {"data.val_fraction", "data.train", is_made_up},
    {"data.val_fraction", "data.val", [](const Config& c) { return !c.data.val.empty(); }},
    {"data.tokenizer", "data.train", is_made_up},
    {"data.zipf.", "data.train", [](const Config& c) { return builtin_of(c.data) != "builtin:zipf"; }},
    {"data.zipf.burst_length", "data.zipf.burst_every", no_bursts},
    {"data.zipf.burst_share", "data.zipf.burst_every", no_bursts},
    {"train.sample_prompt", "train.sample_every", [](const Config& c) { return c.train.sample_every == 0; }},
    {"train.schedule.min_ratio", "train.schedule.kind", stays_constant},
    {"train.schedule.decay_steps", "train.schedule.kind", stays_constant},
    {"train.spike.z", "train.spike.window", no_spikes},
    {"train.spike.action", "train.spike.window", no_spikes},
};

std::vector<ConfigField> plain_fields(const Config& config) {
  Config copy = config;
  std::vector<ConfigField> fields;
  for (const ConfigSection& section : config_sections(copy))
    for (ConfigField& field : section_fields(section)) fields.push_back(std::move(field));
  return fields;
}

bool concerns(const Switched& s, const std::string& key) {
  const std::string_view wanted = s.key;
  return wanted.ends_with('.') ? key.starts_with(wanted) : key == wanted;
}

}  // namespace

std::vector<IdleSetting> idle_fields(const Config& config) {
  const std::vector<ConfigField> fields = plain_fields(config), defaults = plain_fields(Config{});
  const auto value_of = [&](const std::string& key) {
    return std::find_if(fields.begin(), fields.end(), [&](const ConfigField& f) { return f.key == key; })->value;
  };
  std::vector<IdleSetting> idle;
  for (size_t i = 0; i < fields.size(); ++i) {
    const ConfigField& field = fields[i];
    if (field.value == defaults[i].value) continue;
    const auto off = std::find_if(std::begin(kSwitched), std::end(kSwitched),
                                  [&](const Switched& s) { return concerns(s, field.key) && s.off(config); });
    if (off == std::end(kSwitched)) continue;
    idle.push_back({{field.key, off->by},
                    fmt::format("{} = {} is not used: {} = {}", field.key, field.value, off->by, value_of(off->by)),
                    "",
                    false});
  }
  return idle;
}

}  // namespace rowan
