#include "train/plan.h"

#include <algorithm>

#include "core/error.h"
#include "core/tensor.h"
#include "layers/parameter_specs.h"
#include "train/corpus.h"
#include "train/machine_rates.h"
#include "train/resident_memory.h"
#include "train/sampled_loss.h"
#include "train/step_cost.h"

namespace rowan {
namespace {

std::string group_of(const std::string& parameter) {
  if (parameter.starts_with("embed.tokens.")) return "token table";
  if (parameter.starts_with("embed.positions.")) return "position table";
  if (parameter.starts_with("head.")) return "head";
  if (parameter.find(".attn.") != std::string::npos) return "attention";
  if (parameter.find(".mlp.") != std::string::npos) return "mlp";
  return "norms";
}

std::vector<PlanGroup> count_groups(const GptConfig& model) {
  std::vector<PlanGroup> groups;
  for (const ParameterSpec& spec : parameter_specs(model)) {
    const std::string name = group_of(spec.name);
    auto it = std::find_if(groups.begin(), groups.end(), [&](const PlanGroup& g) { return g.name == name; });
    if (it == groups.end()) it = groups.insert(groups.end(), {name, 0});
    it->parameters += spec.shape.size();
  }
  return groups;
}

std::vector<std::string> remarks_on(const Config& c) {
  std::vector<std::string> remarks;
  const GptConfig m = step_shape(c).model;
  const int64_t read = c.data.batch_size * c.data.seq_len * c.train.grad_accum;
  if (c.model.tied && c.train.untie_at > 0 && !m.tied)
    remarks.push_back(
        join_text("the head is untied after step ", c.train.untie_at, ": sizes and speed are those of the untied model"));
  if (m.tied && c.train.tied_two_source)
    remarks.push_back(join_text("the tied table is updated from two sources: at most ", std::min(m.vocab_size, read),
                                " rows from the lookup, and every row from the softmax, with optimizer state for each"));
  else if (m.tied)
    remarks.push_back("the head is tied to the token table: the table is updated densely, every row in every step");
  if (c.train.loss == "sampled")
    remarks.push_back(join_text("sampled softmax: the head is updated by rows, at most ",
                                std::min(m.vocab_size, read + c.train.sampled.negatives * c.train.grad_accum), " of ", m.vocab_size,
                                " in a step; evaluation is over all of them"));
  if (!m.tied)
    remarks.push_back(join_text("the token table is updated by rows: at most ", std::min(m.vocab_size, read), " of ", m.vocab_size,
                                " in a step"));
  if (m.positions == "rope") remarks.push_back("rotary positions have no parameters, and no length that they end at");
  if (m.positions == "learned" && c.data.seq_len < m.max_seq_len)
    remarks.push_back(join_text("positions from ", c.data.seq_len, " to ", m.max_seq_len - 1,
                                " are never trained: data.seq_len is shorter than model.max_seq_len"));
  if (c.train.recompute) remarks.push_back("train.recompute: every block's forward pass is computed twice");
  for (const IdleSetting& idle : idle_settings(c)) remarks.push_back(idle.what);
  return remarks;
}

}  // namespace

Config with_known_vocabulary(Config config) {
  if (config.model.vocab_size == 0) {
    const auto given = [](const std::string& path) { return !path.empty(); };
    const bool data = std::any_of(config.data.train.begin(), config.data.train.end(), given);
    if (!data && config.data.tokenizer == "char")
      throw Error("[plan] the vocabulary is not known: model.vocab_size is 0, and data.train is not set to make characters of",
                  ErrorKind::kUsage, "name the text with --set data.train=FILE, or the size with --set model.vocab_size=N");
    config.model.vocab_size =
        data ? open_corpus(config.data).tokenizer->vocab_size() : open_tokenizer(config.data.tokenizer, {})->vocab_size();
  }
  config.model.resolve();
  check_negatives(config);
  return config;
}

Plan plan_sizes(const Config& config) {
  Plan plan;
  plan.config = config;
  const StepShape shape = step_shape(config);
  plan.groups = count_groups(shape.model);
  plan.parameters = parameter_count(shape.model);
  plan.memory = plan_memory(config);
  // Names, shapes, checksums and HDF5's own records, about this much an array.
  constexpr int64_t kBytesAnArray = 512;
  const auto arrays = static_cast<int64_t>(4 * parameter_specs(shape.model).size() + 24);
  plan.checkpoint_bytes = plan.memory.checkpoint + arrays * kBytesAnArray;
  plan.flops_per_token = counted_flops_per_token(shape.model, shape.seq_len, shape.negatives);
  plan.tokens_per_step = config.data.batch_size * config.data.seq_len * config.train.grad_accum;
  plan.remarks = remarks_on(config);
  return plan;
}

void measure_speed(Plan& plan) {
  const Config& c = plan.config;
  const StepShape shape = step_shape(c);
  // The libraries take their own buffers at the first product.
  measured_gemm_rate({{.layer = "any", .pass = "forward", .m = 256, .n = 256, .k = 256}}, 0);
  plan.process_bytes = peak_rss_bytes();
  plan.gemm_rate = quick_gemm_rate(shape, 0.2);
  plan.speed = sample_step(c);
  const auto tokens = static_cast<double>(plan.tokens_per_step);
  plan.tokens_per_s = tokens / plan.speed.step_seconds;
  plan.share_of_gemm = plan.tokens_per_s * plan.flops_per_token / plan.gemm_rate;
  plan.seconds = static_cast<double>(c.train.steps) * plan.speed.step_seconds;
}

}  // namespace rowan
