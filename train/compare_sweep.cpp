#include "train/compare_sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "core/nearest.h"
#include "train/compare_points.h"
#include "train/compare_sweep_check.h"
#include "train/config_reader.h"
#include "train/config_validate.h"

namespace rowan {
namespace {

using Kind = ConfigNode::Kind;

constexpr size_t kLongestLabel = 200;  // of a directory's name; systems allow 255 bytes

// Fields that a run's seed has to be paired by: no arm may have data of its own.
bool is_shared(const std::string& key) {
  return key == "train.seed" || key.rfind("data.", 0) == 0;
}

// Keys that are no fields, for hints.
std::vector<ConfigField> named_fields(const std::vector<std::string>& keys) {
  std::vector<ConfigField> fields;
  for (const std::string& key : keys) fields.push_back({.key = key, .value = "", .help = "", .limits = {}});
  return fields;
}

class SweepReader {
 public:
  SweepReader(std::string file, const ConfigNode& root) : file_(std::move(file)), root_(root), sources_(file_) {}

  Sweep read();

 private:
  [[noreturn]] void fail(ConfigPlace place, const std::string& message, const std::string& hint = {}) const {
    fail_config(place_text(file_, place) + ":", message, hint);
  }
  std::string value_text(const ConfigNode& node) const;
  const ConfigNode& table_at(const ConfigMember& member, const std::string& what) const;
  template <class Take>
  void for_each_field(const ConfigNode& table, const std::string& path, const Take& take) const;
  template <class List>
  void check_new(const List& list, const std::string& key, ConfigPlace place, const std::string& what) const;
  std::vector<SweepSetting> read_settings(const ConfigNode& parent, bool of_arm) const;
  std::vector<SweepAxis> read_axes(const ConfigNode& parent, const std::string& what) const;
  std::vector<int64_t> read_seeds(const std::string& name) const;
  SweepArm read_arm(const ConfigNode& item, const std::vector<SweepAxis>& shared) const;
  void check_grid(const SweepArm& arm) const;
  void read_arms(Sweep& sweep) const;
  void check_arm_name(const std::string& name, const ConfigNode& arm, const Sweep& sweep) const;
  void check_sweep_name(const Sweep& sweep) const;
  void check_seeds(const Sweep& sweep) const;
  void find_baseline(Sweep& sweep) const;

  std::string file_;
  const ConfigNode& root_;
  ConfigSources sources_;
};

std::string SweepReader::value_text(const ConfigNode& node) const {
  switch (node.kind) {
    case Kind::kString:
      return toml_quote(node.text);
    case Kind::kInteger:
    case Kind::kReal:
    case Kind::kBool:
      return toml_text(node);
    case Kind::kArray: {
      std::string text;
      for (const ConfigNode& item : node.items) text += (text.empty() ? "" : ", ") + value_text(item);
      return "[" + text + "]";
    }
    default:
      fail(node.place, "a setting is a number, a string, true, false, or an array, got " + describe_value(node));
  }
}

const ConfigNode& SweepReader::table_at(const ConfigMember& member, const std::string& what) const {
  if (member.value.kind != Kind::kTable)
    fail(member.place, fmt::format("{} is a table of settings, got {}", what, describe_value(member.value)));
  return member.value;
}

// Fields may stand under one quoted key, "optim.lr", or in tables, and as --set spells them: all name the same.
template <class Take>
void SweepReader::for_each_field(const ConfigNode& table, const std::string& path, const Take& take) const {
  for (const ConfigMember& member : table.members) {
    const std::string key = normalize_key(join_key(path, member.key));
    if (key.find('=') != std::string::npos) fail(member.place, fmt::format("a field's key has no '=', got {}", toml_quote(key)));
    if (key == "name")
      fail(member.place, "name can't be set here: each run is named by its arm and seed",
           "name = \"...\" at the top of the sweep names that");
    if (member.value.kind == Kind::kTable)
      for_each_field(member.value, key, take);
    else
      take(key, member);
  }
}

template <class List>
void SweepReader::check_new(const List& list, const std::string& key, ConfigPlace place, const std::string& what) const {
  const auto is_same = [&](const auto& item) { return item.key == key; };
  if (std::any_of(list.begin(), list.end(), is_same)) fail(place, fmt::format("{} has {} twice", what, key));
}

std::vector<SweepSetting> SweepReader::read_settings(const ConfigNode& parent, bool of_arm) const {
  std::vector<SweepSetting> settings;
  const ConfigMember* member = parent.find("set");
  if (member == nullptr) return settings;
  for_each_field(table_at(*member, "set"), "", [&](const std::string& key, const ConfigMember& field) {
    if (of_arm && is_shared(key))
      fail(field.place, fmt::format("an arm can't set {}: arms are compared in pairs of one seed and the same data", key),
           "set it in [set], for all arms");
    check_new(settings, key, field.place, of_arm ? "set of the arm" : "[set]");
    settings.push_back({key, value_text(field.value), field.value.place});
  });
  return settings;
}

std::vector<SweepAxis> SweepReader::read_axes(const ConfigNode& parent, const std::string& what) const {
  std::vector<SweepAxis> axes;
  const ConfigMember* member = parent.find("grid");
  if (member == nullptr) return axes;
  for_each_field(table_at(*member, "grid"), "", [&](const std::string& key, const ConfigMember& field) {
    if (is_shared(key))
      fail(field.place, fmt::format("the grid can't set {}: runs of one seed are compared on the same data", key));
    check_new(axes, key, field.place, what);
    const ConfigNode& list = field.value;
    if (list.kind != Kind::kArray || list.items.empty())
      fail(list.place, fmt::format("{} must be an array of the values to try, got {}", key,
                                   list.kind == Kind::kArray ? "an empty one" : describe_value(list)));
    SweepAxis axis{key, {}, {}, list.place};
    for (const ConfigNode& item : list.items) {
      const std::string text = value_text(item);
      if (std::find(axis.values.begin(), axis.values.end(), text) != axis.values.end())
        fail(item.place, fmt::format("{} has the value {} twice", key, text));
      axis.values.push_back(text);
      if (item.kind == Kind::kInteger) axis.numbers.push_back(static_cast<double>(item.integer));
      if (item.kind == Kind::kReal) axis.numbers.push_back(item.real);
    }
    if (axis.numbers.size() != axis.values.size()) axis.numbers.clear();
    axes.push_back(std::move(axis));
  });
  return axes;
}

std::vector<int64_t> SweepReader::read_seeds(const std::string& name) const {
  std::vector<int64_t> seeds;
  const ConfigMember* member = root_.find(name);
  if (member == nullptr) return seeds;
  if (member->value.kind != Kind::kArray)
    fail(member->value.place, fmt::format("{} must be an array of integers, got {}", name, describe_value(member->value)));
  for (const ConfigNode& item : member->value.items) {
    if (item.kind != Kind::kInteger || item.integer < 0)
      fail(item.place, fmt::format("a seed is an integer of at least 0, got {}", describe_value(item)));
    if (std::find(seeds.begin(), seeds.end(), item.integer) != seeds.end())
      fail(item.place, fmt::format("{} has {} twice: the same run again says nothing new", name, item.integer));
    seeds.push_back(item.integer);
  }
  return seeds;
}

void SweepReader::check_seeds(const Sweep& sweep) const {
  const ConfigMember* seeds = root_.find("seeds");
  if (sweep.seeds.size() < 2)
    fail(seeds == nullptr ? ConfigPlace{1, 1} : seeds->place,
         fmt::format("seeds must have at least two values, got {}: one run a setting has no spread to judge a difference by",
                     sweep.seeds.size()),
         "e.g. seeds = [1, 2, 3]");
  const ConfigMember* again = root_.find("aa_seeds");
  if (sweep.aa_seeds.empty()) return;
  if (sweep.aa_seeds.size() != sweep.seeds.size())
    fail(again->place, fmt::format("aa_seeds must have as many values as seeds, which has {}, got {}", sweep.seeds.size(),
                                   sweep.aa_seeds.size()));
  for (int64_t seed : sweep.aa_seeds)
    if (std::find(sweep.seeds.begin(), sweep.seeds.end(), seed) != sweep.seeds.end())
      fail(again->place, fmt::format("aa_seeds has {}, which is one of seeds: it would be the same run again", seed));
}

void SweepReader::check_sweep_name(const Sweep& sweep) const {
  if (names_a_directory(sweep.name)) return;
  const ConfigMember* given = root_.find("name");
  fail(given == nullptr ? ConfigPlace{1, 1} : given->value.place, kDirectoryName,
       given == nullptr ? "the file's own name can't be one: set name = \"...\" at the top of the sweep"
                        : "set name = \"...\" at the top of the sweep, or leave it out: the file's name then is the sweep's");
}

void SweepReader::check_arm_name(const std::string& name, const ConfigNode& arm, const Sweep& sweep) const {
  const ConfigMember* member = arm.find("name");
  if (member == nullptr) fail(arm.place, "an arm needs a name");
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
  };
  if (name.empty() || name[0] == '.' || name.size() > 64 || !std::all_of(name.begin(), name.end(), is_plain))
    fail(member->value.place,
         fmt::format("an arm's name is a directory's name of up to 64 letters, digits, '_', '-' and '.', got {}",
                     describe_value(member->value)));
  for (const SweepArm& other : sweep.arms)
    if (other.name == name) fail(member->value.place, fmt::format("there are two arms named \"{}\"", name));
}

SweepArm SweepReader::read_arm(const ConfigNode& item, const std::vector<SweepAxis>& shared) const {
  ConfigSources sources(file_);
  SectionReader reader(sources, "arm", &item, {"set", "grid"});
  SweepArm arm;
  arm.place = item.place;
  reader("name", arm.name, "", {});
  reader.finish(named_fields({"arm.name", "arm.set", "arm.grid"}));
  arm.settings = read_settings(item, true);
  arm.axes = read_axes(item, "grid of the arm");
  for (const SweepAxis& axis : shared) {
    const auto same = [&](const SweepAxis& own) { return own.key == axis.key; };
    if (std::none_of(arm.axes.begin(), arm.axes.end(), same)) arm.axes.push_back(axis);
  }
  arm.points = all_points(arm.axes);
  return arm;
}

void SweepReader::check_grid(const SweepArm& arm) const {
  if (arm.axes.empty()) {
    const ConfigMember* grid = root_.find("grid");
    fail(grid == nullptr ? arm.place : grid->place,
         fmt::format("the grid of arm \"{}\" is empty: there is nothing to choose its best setting from", arm.name),
         "e.g. [grid] \"optim.lr\" = [1e-3, 3e-3, 1e-2]");
  }
  for (const SweepAxis& axis : arm.axes)
    for (const SweepSetting& s : arm.settings)
      if (s.key == axis.key) fail(s.place, fmt::format("arm \"{}\" sets {}, which is also in its grid", arm.name, s.key));
  std::set<std::string> labels;
  for (const SweepPoint& p : arm.points)
    if (p.label.size() > kLongestLabel || !labels.insert(p.label).second)
      fail(arm.place, fmt::format("arm \"{}\": the grid's point {} has no directory name of its own", arm.name, p.label));
}

void SweepReader::read_arms(Sweep& sweep) const {
  const std::vector<SweepAxis> shared = read_axes(root_, "[grid]");
  const ConfigMember* list = root_.find("arm");
  const auto is_table = [](const ConfigNode& item) { return item.kind == Kind::kTable; };
  const bool tables = list != nullptr && list->value.kind == Kind::kArray && !list->value.items.empty() &&
                      std::all_of(list->value.items.begin(), list->value.items.end(), is_table);
  if (!tables) fail(list == nullptr ? ConfigPlace{1, 1} : list->place, "expected [[arm]], once for every setting to be compared");
  for (const ConfigNode& item : list->value.items) {
    SweepArm arm = read_arm(item, shared);
    check_arm_name(arm.name, item, sweep);
    check_grid(arm);
    sweep.arms.push_back(std::move(arm));
  }
}

void SweepReader::find_baseline(Sweep& sweep) const {
  if (sweep.baseline.empty()) sweep.baseline = sweep.arms[0].name;
  std::vector<std::string> names;
  for (const SweepArm& arm : sweep.arms) names.push_back(arm.name);
  const auto found = std::find(names.begin(), names.end(), sweep.baseline);
  if (found == names.end()) {
    const std::string near = nearest_name(sweep.baseline, names);
    fail(root_.find("baseline")->value.place, fmt::format("there is no arm named \"{}\"", sweep.baseline),
         near.empty() ? "" : fmt::format("did you mean \"{}\"?", near));
  }
  sweep.baseline_arm = static_cast<size_t>(found - names.begin());
}

Sweep SweepReader::read() {
  Sweep sweep;
  sweep.file = file_;
  sweep.name = std::filesystem::path(file_).stem().string();
  SectionReader reader(sources_, "", &root_, {"seeds", "aa_seeds", "set", "grid", "arm"});
  sweep.visit(reader);
  std::vector<ConfigField> known = section_fields({"", "", [&](FieldVisitor& v) { sweep.visit(v); }});
  for (const ConfigField& field : named_fields({"seeds", "aa_seeds", "set", "grid", "arm"})) known.push_back(field);
  reader.finish(known);
  check_sweep_name(sweep);
  if (sweep.base.empty()) fail({1, 1}, "base is missing: the config that all runs start from", "e.g. base = \"small.toml\"");
  sweep.seeds = read_seeds("seeds");
  sweep.aa_seeds = read_seeds("aa_seeds");
  check_seeds(sweep);
  for (std::string& key : sweep.seed_keys) key = normalize_key(key);
  sweep.settings = read_settings(root_, false);
  const ConfigMember* keys = root_.find("seed_keys");
  check_seed_keys(sweep, keys == nullptr ? ConfigPlace{1, 1} : keys->value.place);
  check_settings_for_all(sweep, read_axes(root_, "[grid]"));
  read_arms(sweep);
  find_baseline(sweep);
  return sweep;
}

std::string override_text(const std::string& key, const std::string& value) {
  return key + "=" + value;
}

// Where in the sweep a config went wrong: at the setting that the message is about, else at the arm.
ConfigPlace place_of(const Sweep& sweep, const SweepArm& arm, const SweepPoint& point, const std::string& message) {
  ConfigPlace place = arm.place;
  for (const auto* settings : {&sweep.settings, &arm.settings, &point.settings})
    for (const SweepSetting& s : *settings)
      if (message.find("--set " + s.key + "=") != std::string::npos) place = s.place;
  return place;
}

}  // namespace

void Sweep::visit(FieldVisitor& v) {
  v("name", name, "names the comparison and its directory (the file's name without folder and ending)");
  v("base", base, "the config that all runs start from; a path beside the sweep's file");
  v("baseline", baseline, "the arm that all others are compared with (\"\": the first)");
  v("confidence", confidence, "of the intervals; 1 - confidence is the level of the tests", between(0.5, 0.9999));
  v("resamples", resamples, "of the bootstrap", between(100, 1000000));
  v("seed_keys", seed_keys, "the fields that a run's seed is written to, e.g. data.zipf.seed besides train.seed");
}

Sweep load_sweep(const std::string& path, const std::vector<std::string>& overrides) {
  const ConfigNode root = parse_toml(read_config_file(path), path);
  Sweep sweep = SweepReader(path, root).read();
  sweep.base = (std::filesystem::path(path).parent_path() / sweep.base).string();
  sweep.base_text = read_config_file(sweep.base);
  for (const ConfigOverride& given : parse_overrides(overrides))
    sweep.settings.push_back({join_key(given.path, given.leaf), given.value, {}});
  check_overrides(sweep);
  const Config first = run_config(sweep, 0, 0, sweep.seeds[0]);
  IdleOfRuns idle(sweep.arms.size());
  TextOfRuns texts(sweep.arms.size());
  for (size_t arm = 0; arm < sweep.arms.size(); ++arm) {
    for (size_t point = 0; point < sweep.arms[arm].points.size(); ++point) {
      const Config config = run_config(sweep, arm, point, sweep.seeds[0]);
      check_no_batch_left_out(sweep, config, sweep.arms[arm]);
      check_pair(sweep, first, config, sweep.arms[arm], sweep.arms[arm].points[point]);
      check_no_empty_group(config);
      idle[arm].push_back(idle_settings(config));
      texts[arm].push_back(config_text(config));
    }
  }
  check_no_idle_settings(sweep, idle);
  check_no_run_twice(sweep, texts);
  return sweep;
}

Config run_config(const Sweep& sweep, size_t arm, size_t point, int64_t seed) {
  const SweepArm& a = sweep.arms[arm];
  const SweepPoint& p = a.points[point];
  std::vector<std::string> overrides;
  for (const auto* settings : {&sweep.settings, &a.settings, &p.settings})
    for (const SweepSetting& s : *settings) overrides.push_back(override_text(s.key, s.value));
  for (const std::string& key : sweep.seed_keys) overrides.push_back(override_text(key, toml_text(seed)));
  overrides.push_back(override_text("name", fmt::format("{}-seed-{}", a.name, seed)));
  try {
    return parse_config(sweep.base_text, sweep.base, overrides);
  } catch (const Error& e) {
    const std::string message = message_of(e);
    const ConfigPlace place = place_of(sweep, a, p, message);
    fail_config(place.line == 0 ? "--set:" : place_text(sweep.file, place) + ":", fmt::format("arm \"{}\": {}", a.name, message),
                e.hint());
  }
}

}  // namespace rowan
