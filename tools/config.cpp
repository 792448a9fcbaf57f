// rowan config: what a config may say, what one says in full, and what differs between two.
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tools/command.h"
#include "tools/output.h"
#include "train/config.h"

namespace rowan::tools {
namespace {

struct ConfigOptions {
  std::string key;
  bool all = false;
  std::string file;
  std::string other;
  std::vector<std::string> overrides;
};

// A run's directory stands for the config it was made with.
std::string config_path(const std::string& path) {
  const std::filesystem::path inside = std::filesystem::path(path) / "config.toml";
  std::error_code ignored;  // what is not there is reported by whoever opens it
  return std::filesystem::exists(inside, ignored) ? inside.string() : path;
}

void run_resolve(const ConfigOptions& options) {
  const std::string path = config_path(options.file);
  const Config config = load_config(path, options.overrides);
  if (path == options.file) check_no_idle_settings(config);  // what a run has stays readable
  print_text(resolved_toml(config));
}

void run_diff(const ConfigOptions& options) {
  const Config before = load_config(config_path(options.file));
  const Config after = load_config(config_path(options.other));
  const auto shown = [](const std::string& value) { return value.empty() ? std::string("(absent)") : value; };
  for (const ConfigChange& change : config_diff(before, after)) {
    print("{}: {} -> {}\n", change.key, shown(change.before), shown(change.after));
  }
}

void add_config_command(CLI::App& app) {
  CLI::App* config = app.add_subcommand("config", "Explain, resolve and compare config files");
  config->require_subcommand(1);
  const auto options = std::make_shared<ConfigOptions>();

  CLI::App* explain = config->add_subcommand("explain", "Every field with its type, limits, default and meaning");
  CLI::Option* key = explain->add_option("key", options->key, "A field, a table, \"optim\" or \"optim.<rule>\", in full");
  key->type_name("KEY");
  explain->add_flag("--all", options->all, "Everything in full; without it and without a KEY, one line a field")->excludes(key);
  explain->callback([options] { print_text(options->all ? explain_everything() : explain_config(options->key)); });

  CLI::App* resolve = config->add_subcommand("resolve", "Print every field of a config with its value and where that came from");
  resolve->add_option("config", options->file, "Config file, or the directory of a run")->required()->type_name("CONFIG|DIR");
  add_set_option(*resolve, options->overrides);
  resolve->callback([options] { run_resolve(*options); });

  CLI::App* diff = config->add_subcommand("diff", "Fields that differ between two configs");
  diff->add_option("a", options->file, "Config file, or the directory of a run")->required()->type_name("A");
  diff->add_option("b", options->other, "Config file, or the directory of a run")->required()->type_name("B");
  diff->callback([options] { run_diff(*options); });
}
ROWAN_COMMAND(add_config_command);

}  // namespace
}  // namespace rowan::tools
