// rowan bench generate: tokens a second for one stream, beside the speed at which memory can hand over the weights.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "core/parallel.h"
#include "tools/bench_config.h"
#include "tools/command.h"
#include "tools/training.h"
#include "train/bench_generate.h"

namespace rowan::tools {
namespace {

struct Options {
  std::string config;
  std::vector<std::string> overrides;
  GenerateBenchOptions bench;
  bool json = false;
};

void print_json(const Config& config, const GenerateBench& b) {
  const nlohmann::ordered_json out{{"config", config.name},          {"parameters", b.parameters},
                                   {"threads", current_threads()},   {"prompt_tokens", b.prompt},
                                   {"prompt_ms", b.prompt_ms},       {"tokens", b.tokens},
                                   {"token_ms", b.token_ms},         {"token_ms_p10", b.low_ms},
                                   {"token_ms_p90", b.high_ms},      {"tokens_per_s", 1e3 / b.token_ms},
                                   {"weight_bytes", b.weight_bytes}, {"copy_gb_per_s", b.copy_gb_per_s},
                                   {"limit_ms", b.limit_ms()},       {"share_of_limit", b.share_of_limit()}};
  fmt::print("{}\n", out.dump());
}

void print_text(const GenerateBench& b) {
  fmt::print("model       {} parameters, {} {}\n", b.parameters, current_threads(), current_threads() == 1 ? "thread" : "threads");
  fmt::print("prompt      {} tokens in {:.2f} ms\n", b.prompt, b.prompt_ms);
  fmt::print("time        {:.2f} ms a token (median of {}; a tenth below {:.2f}, a tenth above {:.2f}); {:.1f} tokens/s\n",
             b.token_ms, b.tokens, b.low_ms, b.high_ms, 1e3 / b.token_ms);
  fmt::print("limit       {:.2f} ms to read {:.1f} MB of weights at {:.1f} GB/s, the copy rate measured in this process\n",
             b.limit_ms(), b.weight_bytes / 1e6, b.copy_gb_per_s);
  fmt::print("ratio       {:.3f} of the memory's speed\n", b.share_of_limit());
}

void run_bench_generate(const Options& o) {
  const Config config = bench_config(o.config, o.overrides);
  const Threads threads(thread_count(config.train.threads));
  const GenerateBench result = bench_generate(config, o.bench);
  o.json ? print_json(config, result) : print_text(result);
}

void add_bench_generate_command(CLI::App& app) {
  auto o = std::make_shared<Options>();
  CLI::App& bench = command_group(app, "bench", "Measure this machine");
  CLI::App* command = bench.add_subcommand("generate", "Tokens of one stream, beside the memory's speed");
  command->add_option("--config", o->config, "Config file")->required()->type_name("CONFIG");
  add_set_option(*command, o->overrides);
  command->add_option("--prompt", o->bench.prompt, "Random tokens before the measured ones (0: 16, fewer where positions end)")
      ->check(CLI::Range(0, 1 << 24))
      ->capture_default_str();
  command->add_option("--tokens", o->bench.tokens, "Measured tokens (0: 128, fewer where positions end)")
      ->check(CLI::Range(0, 1 << 24))
      ->capture_default_str();
  command->add_flag("--json", o->json, "One JSON object on stdout");
  command->callback([o] { run_bench_generate(*o); });
}
ROWAN_COMMAND(add_bench_generate_command);

}  // namespace
}  // namespace rowan::tools
