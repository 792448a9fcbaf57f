#include "train/step_sample.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

#include "core/ops/sampled_softmax.h"
#include "core/tensor.h"
#include "layers/gpt.h"
#include "layers/init.h"
#include "layers/parameter_specs.h"
#include "optim/planned_state.h"
#include "train/machine_rates.h"
#include "train/memory_plan.h"
#include "train/precision.h"
#include "train/step_cost.h"

namespace rowan {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kSampleFlops = 2.5e10;         // a fifth of a second where a laptop's two cores do 130 GFLOP/s
constexpr int64_t kSampleParameters = 8 << 20;  // of the block
constexpr int64_t kSampleVocabulary = 8192;
constexpr double kSampleSeconds = 0.25;

int64_t block_parameters(const GptConfig& c) {
  int64_t count = 0;
  for (const ParameterSpec& s : parameter_specs(c))
    if (s.name.starts_with("blocks.0.")) count += s.shape.size();
  return count;
}

// As the ops compute: attention skips what the causal mask hides.
double block_flops(const StepShape& s) {
  const auto n = static_cast<double>(s.tokens());
  return n * (6.0 * static_cast<double>(block_parameters(s.model)) +
              6.0 * static_cast<double>(s.model.d_model) * static_cast<double>(s.seq_len));
}

// Fewer heads of the same width, and a narrower MLP in proportion.
GptConfig narrower(GptConfig c) {
  const int64_t width = c.head_dim(), ff = c.ff_width(), heads = std::max<int64_t>(1, c.n_head / 2);
  c.d_ff = std::max<int64_t>(1, ff * heads / c.n_head);
  c.n_kv_head = std::min(c.kv_heads(), heads);
  if (heads % c.n_kv_head != 0) c.n_kv_head = heads;
  c.n_head = heads;
  c.d_model = width * heads;
  return c;
}

StepShape cut(StepShape s) {
  s.model.n_layer = 1;
  while (block_parameters(s.model) > kSampleParameters && s.model.n_head > 1) s.model = narrower(s.model);
  while (block_flops(s) > kSampleFlops && s.batch > 1) s.batch = (s.batch + 1) / 2;
  while (block_flops(s) > kSampleFlops && s.seq_len > 64) s.seq_len = (s.seq_len + 1) / 2;
  return s;
}

double time_of(const std::function<void()>& run) {
  run();  // warm-up
  std::vector<double> samples;
  const auto start = Clock::now();
  auto last = start;
  do {
    run();
    const auto now = Clock::now();
    samples.push_back(std::chrono::duration<double>(now - last).count());
    last = now;
  } while (std::chrono::duration<double>(last - start).count() < kSampleSeconds);
  return median_of(samples);
}

Tensor normal(const Shape& shape, uint32_t site, double deviation) {
  Tensor t(shape);
  fill_normal(t, {.purpose = Purpose::kTest, .site = site}, 0, deviation);
  return t;
}

double time_block(const StepShape& whole, double dropout, bool again) {
  const StepShape s = cut(whole);
  Block block(s.model);
  uint32_t site = 0;
  for_each_parameter(block, [&](const std::string&, Parameter& p) { p.value() = normal(p.shape(), ++site, 0.02); });
  const Tensor x = normal({s.batch, s.seq_len, s.model.d_model}, ++site, 1);
  const Pass pass{.training = true, .dropout = dropout, .key = {.seed = 1}};
  const double seconds = time_of([&] {
    if (again) {
      const NoGrad no_grad;
      block.forward(Variable(x), pass, 0);
    }
    backward(block.forward(Variable::leaf(x), pass, 0), x);
  });
  StepShape one = whole;
  one.model.n_layer = 1;
  return seconds * block_flops(one) / block_flops(s);
}

// All of it: its cost does not grow with the vocabulary.
double time_sampled_head(const StepShape& s) {
  const int64_t d = s.model.d_model, table = std::min(s.model.vocab_size, kSampleVocabulary);
  const double flops_a_token = 6.0 * static_cast<double>(d) * static_cast<double>(s.negatives);
  const int64_t rows = std::clamp<int64_t>(s.tokens(), 1, std::max<int64_t>(1, static_cast<int64_t>(kSampleFlops / flops_a_token)));
  const Variable x = Variable::leaf(normal({rows, d}, 1, 1));
  Variable w = Variable::leaf(normal({table, d}, 2, 0.02), GradKind::kRowSparse);
  Ids targets({rows});
  for (int64_t i = 0; i < rows; ++i) targets[i] = static_cast<int32_t>(i % table);
  const NegativeSampler sampler = NegativeSampler::uniform(table);
  const double seconds = time_of([&] {
    const Negatives drawn = sampler.draw(s.negatives, {.purpose = Purpose::kTest});
    backward(sampled_softmax(x, w, targets, drawn, 1.0 / static_cast<double>(rows)));
    w.clear_grad();
  });
  return seconds * static_cast<double>(s.tokens()) / static_cast<double>(rows);
}

double time_head(const StepShape& s) {
  if (s.negatives > 0) return time_sampled_head(s);
  const int64_t d = s.model.d_model, v = s.model.vocab_size, part = std::min(v, kSampleVocabulary);
  const double flops_a_token = 6.0 * static_cast<double>(d) * static_cast<double>(part);
  const auto most = static_cast<int64_t>(kSampleFlops / flops_a_token);
  const int64_t rows = std::clamp<int64_t>(std::min(s.tokens(), detail::head_chunk(s.tokens(), v)), 1, std::max<int64_t>(1, most));
  const Variable x = Variable::leaf(normal({rows, d}, 1, 1));
  Variable w = Variable::leaf(normal({part, d}, 2, 0.02));
  Ids targets({rows});
  for (int64_t i = 0; i < rows; ++i) targets.values()[static_cast<size_t>(i)] = static_cast<int32_t>(i % part);
  const double seconds = time_of([&] {
    backward(head_cross_entropy(x, w, targets, 1.0 / static_cast<double>(rows)));
    w.clear_grad();
  });
  return seconds * static_cast<double>(s.tokens()) / static_cast<double>(rows) * static_cast<double>(v) / static_cast<double>(part);
}

}  // namespace

double update_bytes(const Config& config) {
  double bytes = 0;
  for (const ParameterSpec& s : parameter_specs(step_shape(config).model, head_grads_at(config, config.train.steps))) {
    double share = 1;
    if (s.kind == GradKind::kRowSparse)
      share = static_cast<double>(most_rows_read(config, s, config.train.grad_accum)) /
              static_cast<double>(std::max<int64_t>(1, s.shape[0]));
    const double elements = static_cast<double>(s.shape.size()) * share * static_cast<double>(sizeof(Real));
    const auto state = static_cast<double>(planned_state_bytes(optimizer_for(config, s.name), s.shape, s.kind)) * share;
    bytes += 4 * elements + 2 * state;  // the gradient for its norm and for the update; weights and state both ways
  }
  return bytes;
}

double update_flops(const Config& config) {
  double flops = 0;
  for (const ParameterSpec& s : parameter_specs(step_shape(config).model, head_grads_at(config, config.train.steps)))
    flops += optimizer_for(config, s.name).update_flops(s.shape);
  return flops;
}

StepSample sample_step(const Config& config) {
  const StepShape shape = step_shape(config);
  const UseMatmulPrecision precision(training_precision(config));
  StepSample sample;
  sample.copy_rate = measured_copy_rate();
  if (config.model.n_layer > 0)
    sample.block_seconds =
        static_cast<double>(config.model.n_layer) * time_block(shape, config.model.dropout, config.train.recompute);
  sample.head_seconds = time_head(shape);
  sample.update_seconds = update_bytes(config) / sample.copy_rate;
  if (const double flops = update_flops(config); flops > 0) sample.update_seconds += flops / quick_gemm_rate(shape);
  // Lookup, its gradient and the final norm pass over the residual stream some ten times.
  const double stream = 10.0 * static_cast<double>(shape.tokens() * config.model.d_model) * static_cast<double>(sizeof(Real));
  sample.step_seconds =
      static_cast<double>(config.train.grad_accum) * (sample.block_seconds + sample.head_seconds + stream / sample.copy_rate) +
      sample.update_seconds;
  release_pool();
  return sample;
}

}  // namespace rowan
