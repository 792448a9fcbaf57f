// rowan bench step: training steps of a config's model on random tokens, beside this machine's matrix-multiply rate.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "core/parallel.h"
#include "tools/bench_config.h"
#include "tools/command.h"
#include "tools/training.h"
#include "train/bench_step.h"

namespace rowan::tools {
namespace {

struct BenchStepOptions {
  std::string config;
  std::vector<std::string> overrides;
  StepBenchOptions bench;
  bool json = false;
};

void print_json(const Config& config, const StepBench& b) {
  nlohmann::ordered_json out{{"config", config.name},
                             {"parameters", b.parameters},
                             {"vocab_size", config.model.vocab_size},
                             {"batch_size", config.data.batch_size},
                             {"seq_len", config.data.seq_len},
                             {"tokens_per_step", b.tokens_per_step},
                             {"threads", current_threads()},
                             {"steps", b.steps},
                             {"step_ms", b.step_ms},
                             {"step_ms_p10", b.low_ms},
                             {"step_ms_p90", b.high_ms},
                             {"start_ms", b.start_ms},
                             {"flops_per_token", b.flops_per_token},
                             {"gflops", b.gflops},
                             {"sgemm_gflops", b.sgemm_gflops},
                             {"share_of_sgemm", b.share_of_sgemm()},
                             {"tokens_per_s", b.tokens_per_s},
                             {"copy_gb_per_s", b.copy_gb_per_s},
                             {"peak_rss_bytes", b.peak_rss_bytes},
                             {"pool_peak_bytes", b.pool_peak_bytes}};
  if (!b.profile.empty()) {
    out["profile"] = nlohmann::ordered_json::array();
    for (const OpTime& e : b.profile)
      out["profile"].push_back({{"op", e.op},
                                {"pass", e.pass},
                                {"calls_per_step", static_cast<double>(e.calls) / static_cast<double>(b.steps)},
                                {"ms_per_step", e.seconds * 1e3 / static_cast<double>(b.steps)},
                                {"gflops", e.flops / e.seconds / 1e9},
                                {"gb_per_s", e.bytes / e.seconds / 1e9}});
  }
  fmt::print("{}\n", out.dump());
}

void print_profile(const StepBench& b) {
  double total = 0;
  for (const OpTime& e : b.profile) total += e.seconds;
  fmt::print("\n{:<24} {:<9} {:>8} {:>10} {:>7} {:>9} {:>7}\n", "op", "pass", "a step", "ms a step", "share", "GFLOP/s", "GB/s");
  for (const OpTime& e : b.profile)
    fmt::print("{:<24} {:<9} {:>8.0f} {:>10.3f} {:>6.1f}% {:>9.1f} {:>7.1f}\n", e.op, e.pass,
               static_cast<double>(e.calls) / static_cast<double>(b.steps), e.seconds * 1e3 / static_cast<double>(b.steps),
               100 * e.seconds / total, e.flops / e.seconds / 1e9, e.bytes / e.seconds / 1e9);
}

void print_text(const Config& c, const StepBench& b) {
  fmt::print("model       {} parameters, vocabulary {}\n", b.parameters, c.model.vocab_size);
  fmt::print("step        {} tokens ({} x {} x {}), {} {}\n", b.tokens_per_step, c.data.batch_size, c.data.seq_len,
             c.train.grad_accum, current_threads(), current_threads() == 1 ? "thread" : "threads");
  fmt::print("time        {:.2f} ms a step (median of {}; a tenth below {:.2f}, a tenth above {:.2f}); {:.0f} tokens/s\n",
             b.step_ms, b.steps, b.low_ms, b.high_ms, b.tokens_per_s);
  fmt::print("start       {:.0f} ms for model, optimizer state and first step\n", b.start_ms);
  fmt::print("speed       {:.1f} GFLOP/s (6 P + 12 L D T a token)\n", b.gflops);
  fmt::print("limit       {:.1f} GFLOP/s in this model's matrix products, {:.1f} GB/s copying, measured in this process\n",
             b.sgemm_gflops, b.copy_gb_per_s);
  fmt::print("ratio       {:.3f} of matrix-multiply speed\n", b.share_of_sgemm());
  fmt::print("memory      {:.1f} MB resident at most, {:.2f} x 16 bytes a parameter\n", static_cast<double>(b.peak_rss_bytes) / 1e6,
             static_cast<double>(b.peak_rss_bytes) / (16 * static_cast<double>(b.parameters)));
  if (!b.profile.empty()) print_profile(b);
}

void run_bench_step(const BenchStepOptions& o) {
  const Config config = bench_config(o.config, o.overrides);
  const Threads threads(thread_count(config.train.threads));
  const StepBench result = bench_step(config, o.bench);
  o.json ? print_json(config, result) : print_text(config, result);
}

void add_bench_step_command(CLI::App& app) {
  auto o = std::make_shared<BenchStepOptions>();
  CLI::App& bench = command_group(app, "bench", "Measure this machine");
  CLI::App* command = bench.add_subcommand("step", "Training steps on random tokens, beside the matrix-multiply rate");
  command->add_option("--config", o->config, "Config file")->required()->type_name("CONFIG");
  add_set_option(*command, o->overrides);
  command->add_option("--steps", o->bench.steps, "Measured steps (0: at least 5, and for about 3 seconds)")
      ->check(CLI::Range(0, 1000000));
  command->add_flag("--profile", o->bench.profile, "Time, FLOP/s and GB/s by op, forward and backward");
  command->add_flag("--json", o->json, "One JSON object on stdout");
  command->callback([o] { run_bench_step(*o); });
}
ROWAN_COMMAND(add_bench_step_command);

}  // namespace
}  // namespace rowan::tools
