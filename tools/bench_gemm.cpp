// rowan bench gemm: how fast this machine multiplies matrices of the shapes that training uses, ours beside each library's own
// threads. The rate is the limit that training is measured against.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/nearest.h"
#include "core/parallel.h"
#include "tools/command.h"
#include "tools/training.h"
#include "train/bench_gemm.h"

namespace rowan::tools {
namespace {

struct BenchGemmOptions {
  std::vector<std::string> models;
  int threads = 0;
  int rounds = 7;
  bool json = false;
};

// Those of the known models that are asked for, all when none is.
std::vector<GemmBenchModel> chosen_models(const std::vector<std::string>& wanted) {
  const std::vector<GemmBenchModel> known = default_gemm_bench_models();
  if (wanted.empty()) return known;
  std::vector<std::string> names;
  for (const GemmBenchModel& model : known) names.push_back(model.name);
  std::vector<GemmBenchModel> chosen;
  for (const std::string& name : wanted) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      const std::string near = nearest_name(name, names);
      throw Error(fmt::format("[bench gemm] there is no model '{}'; models: {}", name, fmt::join(names, ", ")), ErrorKind::kUsage,
                  near.empty() ? "" : fmt::format("did you mean '{}'?", near));
    }
    chosen.push_back(known[static_cast<size_t>(found - names.begin())]);
  }
  return chosen;
}

void print_json(const GemmBenchOptions& options, const std::vector<GemmBenchRow>& rows) {
  nlohmann::ordered_json out{{"threads", options.threads}, {"rounds", options.rounds}};
  out["products"] = nlohmann::ordered_json::array();
  for (const GemmBenchRow& r : rows) {
    out["products"].push_back({{"model", r.model},
                               {"layer", r.layer},
                               {"pass", r.pass},
                               {"m", r.m},
                               {"n", r.n},
                               {"k", r.k},
                               {"count", r.count},
                               {"path", r.path},
                               {"median_ms", r.median_ms},
                               {"gflops", r.gflops}});
  }
  out["totals"] = nlohmann::ordered_json::array();
  for (const GemmBenchTotal& t : total_by_model(rows)) {
    out["totals"].push_back({{"model", t.model}, {"path", t.path}, {"ms", t.ms}, {"gflops", t.gflops}});
  }
  fmt::print("{}\n", out.dump());
}

void print_table(const GemmBenchOptions& options, const std::vector<GemmBenchRow>& rows) {
  fmt::print("{} {}, median of {} rounds\n\n", options.threads, options.threads == 1 ? "thread" : "threads", options.rounds);
  fmt::print("{:<16} {:<10} {:<8} {:>7} {:>7} {:>7}  {:<9} {:>10} {:>9}\n", "model", "layer", "pass", "m", "n", "k", "path", "ms",
             "GFLOP/s");
  for (const GemmBenchRow& r : rows) {
    fmt::print("{:<16} {:<10} {:<8} {:>7} {:>7} {:>7}  {:<9} {:>10.3f} {:>9.1f}\n", r.model, r.layer, r.pass, r.m, r.n, r.k, r.path,
               r.median_ms, r.gflops);
  }
  fmt::print("\n{:<16} {:<9} {:>10} {:>9}\n", "all of a step", "path", "ms", "GFLOP/s");
  for (const GemmBenchTotal& t : total_by_model(rows))
    fmt::print("{:<16} {:<9} {:>10.3f} {:>9.1f}\n", t.model, t.path, t.ms, t.gflops);
}

void run_bench_gemm(const BenchGemmOptions& o) {
  GemmBenchOptions options;
  options.models = chosen_models(o.models);
  options.threads = thread_count(o.threads);
  options.rounds = o.rounds;
  const std::vector<GemmBenchRow> rows = bench_gemm(options);
  o.json ? print_json(options, rows) : print_table(options, rows);
}

void add_bench_gemm_command(CLI::App& app) {
  auto o = std::make_shared<BenchGemmOptions>();
  CLI::App& bench = command_group(app, "bench", "Measure this machine");
  CLI::App* command =
      bench.add_subcommand("gemm", "Matrix products of training steps: Rowan's, OpenBLAS' and oneDNN's own threads");
  command->add_option("--model", o->models, "Only this model's products (repeatable; default: all)")->type_name("NAME");
  command->add_option("--threads", o->threads, "Threads (0: the physical cores this process may use)")->check(CLI::Range(0, 1024));
  command->add_option("--rounds", o->rounds, "Samples of each product; the paths take turns (default 7)")
      ->check(CLI::Range(1, 1000));
  command->add_flag("--json", o->json, "One JSON object on stdout");
  command->callback([o] { run_bench_gemm(*o); });
}
ROWAN_COMMAND(add_bench_gemm_command);

}  // namespace
}  // namespace rowan::tools
