// rowan resume: goes on with a run, to the same bits as if it had never stopped.
#include <memory>

#include "tools/command.h"
#include "tools/training.h"
#include "train/signals.h"

namespace rowan::tools {
namespace {

struct ResumeOptions {
  std::string directory;
  std::vector<std::string> overrides;
  bool strict = false;
};

void add_resume_command(CLI::App& app) {
  auto o = std::make_shared<ResumeOptions>();
  CLI::App* command = app.add_subcommand("resume", "Go on with a run from its newest good checkpoint");
  command->add_option("run", o->directory, "Directory of the run")->required()->type_name("DIR");
  add_set_option(*command, o->overrides);
  command->add_flag("--strict", o->strict, "Refuse when the newest checkpoint is damaged, instead of taking the newest good one");
  command->callback([o] {
    const IgnoredSignals ignored({SIGUSR1, SIGPIPE});
    resume_run(o->directory, o->overrides, nullptr, o->strict);
  });
}
ROWAN_COMMAND(add_resume_command);

}  // namespace
}  // namespace rowan::tools
