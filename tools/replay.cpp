// rowan replay: runs a step that went wrong again, and says whether it comes to the same bits.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "core/parallel.h"
#include "tools/command.h"
#include "tools/output.h"
#include "tools/training.h"
#include "train/capsule.h"

namespace rowan::tools {
namespace {

struct ReplayOptions {
  std::string path;
  int64_t threads = 0;
  bool json = false;
};

void print_replay(const Capsule& capsule, const Replay& replay) {
  print("step       {} ({}; the run's answer: {})\n", capsule.failed_step(), capsule.what, capsule.action);
  print("from       {}\n", replay.start);
  print("loss       {}\n", replay.again.loss);
  size_t width = 9;
  for (const Capsule::Norms& n : replay.again.norms) width = std::max(width, n.name.size());
  print("{:<{}}  {:>24}  {:>24}\n", "parameter", width, "norm of the weight", "norm of the gradient");
  for (const Capsule::Norms& n : replay.again.norms) print("{:<{}}  {:>24}  {:>24}\n", n.name, width, n.weight, n.gradient);
  if (replay.differences.empty()) print("the same bits as in the capsule\n");
}

void run_replay(const ReplayOptions& o) {
  const Threads threads(thread_count(o.threads));
  const Capsule capsule = read_capsule(o.path);
  const Replay replay = replay_capsule(o.path, capsule);
  if (o.json) {
    const nlohmann::ordered_json out{{"same", replay.differences.empty()},
                                     {"from", replay.start},
                                     {"differences", replay.differences},
                                     {"replayed", nlohmann::ordered_json::parse(capsule_json(replay.again))}};
    print_object(out, 2);
  } else {
    print_replay(capsule, replay);
  }
  if (!replay.differences.empty())
    fail_data("[replay] step ", capsule.failed_step(), " came to other bits, first at ", replay.differences.front());
}

void add_replay_command(CLI::App& app) {
  auto o = std::make_shared<ReplayOptions>();
  CLI::App* command = app.add_subcommand("replay", "Run a step that went wrong again, to the same bits");
  command->add_option("capsule", o->path, "RUN/capsules/step-N.json, written when the step went wrong")
      ->required()
      ->type_name("CAPSULE");
  command->add_option("--threads", o->threads, "Threads (0: the physical cores)")->check(CLI::Range(0, 1024));
  command->add_flag("--json", o->json, "One JSON object on stdout");
  command->callback([o] { run_replay(*o); });
}
ROWAN_COMMAND(add_replay_command);

}  // namespace
}  // namespace rowan::tools
