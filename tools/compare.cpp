// rowan compare: optimizer settings against each other, over a grid and seeds.
#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "core/parallel.h"
#include "tools/command.h"
#include "tools/output.h"
#include "tools/training.h"
#include "train/compare.h"
#include "train/progress.h"

namespace rowan::tools {
namespace {

struct CompareOptions {
  std::string sweep, out;
  std::vector<std::string> overrides;
};

void show_run(const CompareProgress& p) {
  const RunResult& r = p.outcome.result;
  const std::string loss = r.diverged ? "diverged" : fmt::format("loss {:.4f}", r.validation.loss);
  const std::string time = p.outcome.done_before ? "done before" : format_duration(p.seconds);
  print("[{}/{}] {}  {}  seed {}: {} ({})\n", p.number, p.of, p.arm, p.point, p.seed, loss, time);
  std::fflush(stdout);
}

void run_compare(const CompareOptions& o) {
  const Sweep sweep = load_sweep(o.sweep, o.overrides);
  const std::string directory = o.out.empty() ? "runs/" + sweep.name : o.out;
  const Threads threads(thread_count(run_config(sweep, 0, 0, sweep.seeds[0]).train.threads));
  const CompareOutcome outcome = run_comparison(sweep, directory, show_run);
  if (outcome.signal != 0) {
    print("stopped by signal {}; the same command goes on where it stopped\n", outcome.signal);
    throw ExitStatus{128 + outcome.signal};
  }
  print_text("\n" + results_table(sweep, *outcome.comparison));
  print("\n{} has all of it, and {} one line a run\n", join_path(directory, "results.json"), join_path(directory, "results.csv"));
}

void add_compare_command(CLI::App& app) {
  auto o = std::make_shared<CompareOptions>();
  CLI::App* command = app.add_subcommand("compare", "Compare optimizer settings over a grid and seeds, paired by seed");
  command->add_option("sweep", o->sweep, "Sweep file (TOML): base config, arms, grid, seeds")->required()->type_name("SWEEP");
  add_set_option(*command, o->overrides);
  command->add_option("--out", o->out, "Directory of the runs and results (default: runs/<sweep name>)")->type_name("DIR");
  command->callback([o] { run_compare(*o); });
}
ROWAN_COMMAND(add_compare_command);

}  // namespace
}  // namespace rowan::tools
