// The resolved copy of a config, and what differs between two.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/error.h"
#include "train/config.h"
#include "train/config_document.h"
#include "train/config_fields.h"

namespace rowan {
namespace {

void write_section(const ConfigSection& section, const Config& config, std::string& out) {
  if (section.path.rfind("optim.group.", 0) == 0) {
    out += "\n[[optim.group]]\n";
  } else if (!section.path.empty()) {
    out += fmt::format("\n[{}]\n", section.path);
  }
  for (const ConfigField& field : section_fields(section)) {
    const auto origin = config.origin.find(field.key);
    const std::string comment = origin == config.origin.end() ? "program" : origin->second;
    out += fmt::format("{} = {}  # {}\n", key_leaf(field.key), field.value, escape_controls(comment));
  }
}

// A config may have thousands of groups, each with dozens of fields: those of two configs are not compared pair by pair.
class FieldsByKey {
 public:
  explicit FieldsByKey(const std::vector<ConfigField>& fields) {
    for (const ConfigField& field : fields) by_key_.emplace(field.key, &field);
  }
  const ConfigField* find(const std::string& key) const {
    const auto it = by_key_.find(key);
    return it == by_key_.end() ? nullptr : it->second;
  }

 private:
  std::unordered_map<std::string_view, const ConfigField*> by_key_;
};

// What a change means for a run that goes on from a checkpoint.
struct ResumeRule {
  const char* key;  // of a field, or of a table with all its fields when it ends in a dot
  bool allowed;
  const char* note;
};

// The first that matches counts.
constexpr ResumeRule kResumeRules[] = {
    {"name", true, ""},
    {"train.steps", true, ""},
    {"train.threads", true, ""},
    {"train.max_minutes", true, ""},
    {"train.on_nonfinite", true, "from here on"},
    {"train.spike.", true, "from here on"},
    {"train.eval_every", true, ""},
    {"train.eval_tokens", true, "evaluation losses before and after are over different tokens"},
    {"train.log_every", true, ""},
    {"train.recompute", true, ""},
    {"train.sample_every", true, ""},
    {"train.sample_prompt", true, ""},
    {"checkpoint.", true, ""},
    {"data.train", true, "allowed when the content is the same"},
    {"data.val", true, "allowed when the content is the same"},
    {"model.", false, "the saved weights are those of another model"},
    {"data.tokenizer", false, "the saved embedding belongs to the saved tokenizer"},
    {"data.", false, "the tokens that a step sees would differ from those of one run"},
    {"train.seed", false, "data order and dropout come from the seed"},
    {"train.schedule.", false, "the learning rates of the steps already done came from it"},
    {"optim.", false, "the saved optimizer state belongs to the saved rules and settings"},
    {"", false, "the run would not be the one that an uninterrupted run is"},
};

const ResumeRule& resume_rule(const std::string& key) {
  const auto covers = [&](const ResumeRule& rule) {
    const std::string pattern = rule.key;
    const bool table = pattern.empty() || pattern.back() == '.';
    return table ? key.rfind(pattern, 0) == 0 : key == pattern;
  };
  return *std::find_if(std::begin(kResumeRules), std::end(kResumeRules), covers);
}

// The schedules that end with the run move when its length does.
bool schedule_follows_steps(const Schedule& schedule) {
  return schedule.kind == "wsd" || (schedule.kind != "constant" && schedule.decay_steps == 0);
}

}  // namespace

std::string resolved_toml(const Config& config) {
  Config copy = config;
  std::string out(kResolvedHead);
  for (const auto& sections : {config_sections(copy), optim_sections(copy)}) {
    for (const ConfigSection& section : sections) write_section(section, config, out);
  }
  return out;
}

std::vector<ConfigChange> config_diff(const Config& before, const Config& after) {
  const std::vector<ConfigField> old_fields = config_fields(before);
  const std::vector<ConfigField> new_fields = config_fields(after);
  const FieldsByKey old_by_key(old_fields), new_by_key(new_fields);
  std::vector<ConfigChange> changes;
  for (const ConfigField& field : old_fields) {
    const ConfigField* now = new_by_key.find(field.key);
    if (now == nullptr) {
      changes.push_back({field.key, field.value, "", ""});
    } else if (now->value != field.value) {
      changes.push_back({field.key, field.value, now->value, ""});
    }
  }
  for (const ConfigField& field : new_fields) {
    if (old_by_key.find(field.key) == nullptr) changes.push_back({field.key, "", field.value, ""});
  }
  return changes;
}

std::vector<ConfigChange> check_resume_changes(const Config& saved, const Config& wanted) {
  std::vector<ConfigChange> allowed;
  std::string refused;
  for (ConfigChange& change : config_diff(saved, wanted)) {
    const ResumeRule& rule = resume_rule(change.key);
    if (!rule.allowed) {
      const auto shown = [](const std::string& value) { return value.empty() ? std::string("(absent)") : value; };
      refused += fmt::format("{}{} from {} to {} ({})", refused.empty() ? "" : "; ", change.key, shown(change.before),
                             shown(change.after), rule.note);
      continue;
    }
    change.note = rule.note;
    if (change.key == "train.steps" && schedule_follows_steps(wanted.train.schedule)) {
      change.note = fmt::format("the {} schedule ends at the last step: learning rates from here on are those of a run of {} steps",
                                wanted.train.schedule.kind, wanted.train.steps);
    }
    allowed.push_back(std::move(change));
  }
  if (!refused.empty()) {
    throw Error("[resume] these settings can't change between save and resume: " + refused, ErrorKind::kUsage,
                "allowed: train.steps, threads, eval_*, log_every, sample_*, checkpoint.*, and other paths to the same data; start "
                "a new run for the rest");
  }
  return allowed;
}

}  // namespace rowan
