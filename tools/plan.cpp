// rowan plan: what a run will take, before it is started.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "core/parallel.h"
#include "tools/command.h"
#include "tools/output.h"
#include "tools/training.h"
#include "train/plan.h"
#include "train/progress.h"

namespace rowan::tools {
namespace {

struct PlanOptions {
  std::string config;
  std::vector<std::string> overrides;
  bool json = false;
};

std::string size_text(int64_t bytes) {
  const auto b = static_cast<double>(bytes);
  if (b < 1e6) return fmt::format("{:.1f} kB", b / 1e3);
  return b < 1e9 ? fmt::format("{:.1f} MB", b / 1e6) : fmt::format("{:.2f} GB", b / 1e9);
}

void print_json(const Plan& p, int threads) {
  nlohmann::ordered_json groups = nlohmann::ordered_json::object();
  for (const PlanGroup& g : p.groups) groups[g.name] = g.parameters;
  const nlohmann::ordered_json out{{"name", p.config.name},
                                   {"parameters", p.parameters},
                                   {"parameters_by_group", groups},
                                   {"memory",
                                    {{"weights_bytes", p.memory.weights},
                                     {"gradients_bytes", p.memory.gradients},
                                     {"optimizer_bytes", p.memory.optimizer_state},
                                     {"activations_bytes", p.memory.activations},
                                     {"pool_peak_bytes", p.memory.training},
                                     {"pool_held_bytes", p.memory.pool},
                                     {"flushed_bytes", p.memory.flushed},
                                     {"bf16_operand_bytes", p.memory.packed},
                                     {"copied_bytes", p.memory.copied},
                                     {"process_bytes", p.process_bytes},
                                     {"checkpoint_buffer_bytes", p.memory.checkpoint}}},
                                   {"peak_rss_bytes", p.training_rss()},
                                   {"peak_rss_with_checkpoint_bytes", p.saving_rss()},
                                   {"checkpoint_bytes", p.checkpoint_bytes},
                                   {"flops_per_token", p.flops_per_token},
                                   {"tokens_per_step", p.tokens_per_step},
                                   {"threads", threads},
                                   {"gemm_gflops", p.gemm_rate / 1e9},
                                   {"copy_gb_per_s", p.speed.copy_rate / 1e9},
                                   {"step_ms", p.speed.step_seconds * 1e3},
                                   {"tokens_per_s", p.tokens_per_s},
                                   {"share_of_gemm", p.share_of_gemm},
                                   {"steps", p.config.train.steps},
                                   {"seconds", p.seconds},
                                   {"remarks", p.remarks}};
  print_object(out);
}

void print_text(const Plan& p, int threads) {
  const Config& c = p.config;
  const GptConfig& m = c.model;
  print("model          {} layers, {} wide, {} heads, vocabulary {}, positions {}, {}, {}\n", m.n_layer, m.d_model, m.n_head,
        m.vocab_size, m.positions, m.norm, m.mlp);
  print("parameters     {}\n", p.parameters);
  for (const PlanGroup& g : p.groups) print("  {:<16} {:>14}\n", g.name, g.parameters);
  print("memory         {} while training, {} while a checkpoint is saved\n", size_text(p.training_rss()),
        size_text(p.saving_rss()));
  for (const auto& [name, bytes] :
       std::initializer_list<std::pair<const char*, int64_t>>{{"weights", p.memory.weights},
                                                              {"gradients", p.memory.gradients},
                                                              {"optimizer state", p.memory.optimizer_state},
                                                              {"activations", p.memory.activations},
                                                              {"program", p.process_bytes},
                                                              {"rows catching up", p.memory.flushed},
                                                              {"checkpoint image", p.memory.checkpoint}})
    if (bytes > 0) print("  {:<16} {:>14}\n", name, size_text(bytes));
  print("checkpoint     {} a file\n", size_text(p.checkpoint_bytes));
  print("step           {} tokens ({} x {} x {}), {:.4g} MFLOPs a token (6 P + 12 L D T)\n", p.tokens_per_step, c.data.batch_size,
        c.data.seq_len, c.train.grad_accum, p.flops_per_token / 1e6);
  print("machine        {:.1f} GFLOP/s in this model's matrix products, {:.1f} GB/s copying, {} {} (measured now)\n",
        p.gemm_rate / 1e9, p.speed.copy_rate / 1e9, threads, threads == 1 ? "thread" : "threads");
  print(
      "speed          {:.0f} tokens/s, {:.1f} ms a step, {:.0f} % of matrix-multiply speed (from one block and a part of the "
      "head)\n",
      p.tokens_per_s, p.speed.step_seconds * 1e3, 100 * p.share_of_gemm);
  print("time           {} for {} steps, evaluation and saving left out\n", format_duration(p.seconds), c.train.steps);
  for (const std::string& remark : p.remarks) print("note           {}\n", remark);
}

void run_plan(const PlanOptions& o) {
  const Config given = load_config(o.config, o.overrides);
  check_no_idle_settings(given);
  const Config config = with_known_vocabulary(given);
  const Threads threads(thread_count(config.train.threads));
  Plan plan = plan_sizes(config);
  measure_speed(plan);
  o.json ? print_json(plan, current_threads()) : print_text(plan, current_threads());
}

void add_plan_command(CLI::App& app) {
  auto o = std::make_shared<PlanOptions>();
  CLI::App* command = app.add_subcommand("plan", "Parameters, memory, speed on this machine and time to finish, before training");
  command->add_option("config", o->config, "Config file")->required()->type_name("CONFIG");
  add_set_option(*command, o->overrides);
  command->add_flag("--json", o->json, "One JSON object on stdout");
  command->callback([o] { run_plan(*o); });
}
ROWAN_COMMAND(add_plan_command);

}  // namespace
}  // namespace rowan::tools
