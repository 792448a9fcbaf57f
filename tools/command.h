// Subcommands: one file each, which registers itself.
//
//   static void add_eval_command(CLI::App& app) {               // tools/eval.cpp
//     auto options = std::make_shared<EvalOptions>();
//     CLI::App* command = app.add_subcommand("eval", "Loss, perplexity and bits per byte over a whole split");
//     command->add_option("checkpoint", options->path, "Checkpoint, or the directory of a run")->required()->type_name("CKPT|DIR");
//     command->callback([options] { run_eval(*options); });
//   }
//   ROWAN_COMMAND(add_eval_command);
//
// The callback runs when the whole command line has been accepted. It throws rowan::Error for what went wrong and ExitStatus to
// end with a code of its own; main() prints errors and chooses exit codes, no command does. A command with subcommands calls
// require_subcommand(1). An option takes one value each time it is named; a vector collects those of a repeated one. Results go
// to stdout (std::cout, stdio or fmt), everything else to stderr.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

namespace rowan::tools {

// Thrown by a callback that has done its work and must not end with 0: 130 after SIGINT with the checkpoint saved.
struct ExitStatus {
  int code = 0;
};

using AddCommand = void (*)(CLI::App& app);

// The commands linked into this program, by the names of their functions.
inline std::map<std::string, AddCommand>& command_registry() {
  static std::map<std::string, AddCommand> commands;
  return commands;
}

#define ROWAN_COMMAND(function) \
  [[maybe_unused]] static const bool registered_##function = ::rowan::tools::command_registry().emplace(#function, function).second

// A command that only holds others, which may stand in several files: `rowan bench`.
inline CLI::App& command_group(CLI::App& app, const std::string& name, const std::string& description) {
  const auto found = app.get_subcommands([&name](const CLI::App* command) { return command->get_name() == name; });
  CLI::App* group = found.empty() ? app.add_subcommand(name, description)->require_subcommand(1) : found.front();
  return *group;
}

// --set k=v, as often as wanted.
inline CLI::Option* add_set_option(CLI::App& command, std::vector<std::string>& overrides) {
  return command.add_option("--set", overrides, "Override a field of the config, e.g. --set train.steps=100 (repeatable)")
      ->type_name("KEY=VALUE");
}

}  // namespace rowan::tools
