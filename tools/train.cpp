// rowan train: a new run from a config file.
#include <memory>

#include "core/parallel.h"
#include "tools/command.h"
#include "tools/training.h"
#include "train/signals.h"

namespace rowan::tools {
namespace {

struct TrainOptions {
  std::string config, out;
  std::vector<std::string> overrides;
  bool resume = false, overwrite = false;
};

// With --resume, a run that died before its first checkpoint starts again in its place, and nothing of it is removed: another
// process may have saved one since we looked, and only under the lock can we tell.
RunDir place_of_run(const std::string& directory, const TrainOptions& o) {
  if (!o.resume || !is_run(directory)) return RunDir::create(directory, o.overwrite);
  RunDir run = RunDir::open(directory);
  if (!checkpoint_steps(directory).empty())
    throw Error("[train] another process has just saved a checkpoint in '" + directory + "'", ErrorKind::kData,
                "run the same command again to go on from it");
  return run;
}

void run_train(const TrainOptions& o) {
  const IgnoredSignals ignored({SIGUSR1, SIGPIPE});
  const Config config = load_config(o.config, o.overrides);
  const std::string directory = o.out.empty() ? "runs/" + config.name : o.out;
  if (o.resume && !checkpoint_steps(directory).empty()) return resume_run(directory, {}, &config, false);
  check_no_idle_settings(config);
  const Threads threads(thread_count(config.train.threads));
  TrainSession session(config);  // all that can be wrong with config and data comes out before anything is written
  RunDir run = place_of_run(directory, o);
  run_training(session, run);
}

void add_train_command(CLI::App& app) {
  auto o = std::make_shared<TrainOptions>();
  CLI::App* command = app.add_subcommand("train", "Train a model from a config file");
  command->add_option("config", o->config, "Config file (TOML)")->required()->type_name("CONFIG");
  add_set_option(*command, o->overrides);
  command->add_option("--out", o->out, "Directory of the run (default: runs/<config name>)")->type_name("DIR");
  CLI::Option* resume = command->add_flag("--resume", o->resume, "Go on when the run exists, start when it does not");
  command->add_flag("--overwrite", o->overwrite, "Remove the run that is in the directory and start anew")->excludes(resume);
  command->callback([o] { run_train(*o); });
}
ROWAN_COMMAND(add_train_command);

}  // namespace
}  // namespace rowan::tools
