#include "train/bench_step.h"

#include <chrono>
#include <memory>
#include <optional>

#include "layers/gpt.h"
#include "optim/groups.h"
#include "train/machine_rates.h"
#include "train/precision.h"
#include "train/resident_memory.h"
#include "train/sampled_loss.h"
#include "train/session.h"
#include "train/step_cost.h"
#include "train/step_sample.h"

namespace rowan {
namespace {

using Clock = BenchClock;

// What TrainSession does in a step, with random tokens in place of a corpus.
class RandomSession {
 public:
  explicit RandomSession(const Config& config)
      : config_(config),
        model_(config.model, static_cast<uint64_t>(config.train.seed), head_grads_at(config, 0)),
        sampler_(make_sampler(config)),
        optimizers_(make_optimizers(config, model_)) {}

  void step(StepProfile* profile) {
    ++step_;
    const UseMatmulPrecision precision(training_precision(config_));
    const auto tokens = static_cast<double>(config_.data.batch_size * config_.data.seq_len * config_.train.grad_accum);
    for (int64_t i = 0; i < config_.train.grad_accum; ++i) {
      const Ids inputs = random_ids(2 * static_cast<uint64_t>(i)), targets = random_ids(2 * static_cast<uint64_t>(i) + 1);
      if (profile != nullptr) profile->start();
      const auto number = static_cast<uint64_t>(step_ * config_.train.grad_accum + i);
      const Pass pass{.training = true,
                      .dropout = config_.model.dropout,
                      .key = {.seed = static_cast<uint64_t>(config_.train.seed), .step = number},
                      .recompute = config_.train.recompute};
      backward(loss_of(inputs, targets, 1 / tokens, pass));
    }
    const GradNorm norm = optimizers_->clip_and_step(config_.train.clip_norm, {.step = step_, .lr_factor = 1});
    if (!norm.finite)
      throw Error("[bench step] the gradient of " + norm.non_finite + " is not finite", ErrorKind::kNonFinite,
                  "lower the learning rate");
    if (profile != nullptr) profile->part_done("clip and update", update_bytes(config_));
  }

 private:
  // Tokens are uniform here, and so are their counts: "unigram" draws from a table as it does from a text's counts.
  static std::optional<NegativeSampler> make_sampler(const Config& config) {
    if (config.train.sampled.sampler != "unigram") return make_negative_sampler(config, nullptr);
    const std::vector<double> counts(static_cast<size_t>(config.model.vocab_size), 1);
    return config.train.loss == "sampled" ? std::optional(NegativeSampler::weighted(counts)) : std::nullopt;
  }
  Variable loss_of(const Ids& inputs, const Ids& targets, double scale, const Pass& pass) {
    if (!sampler_) return model_.loss(inputs, targets, scale, pass);
    const Negatives drawn = sampler_->draw(config_.train.sampled.negatives, negatives_key(config_, pass.key.step));
    return model_.sampled_loss(inputs, targets, drawn, scale, pass);
  }

  Ids random_ids(uint64_t stream) const {
    Ids ids({config_.data.batch_size, config_.data.seq_len});
    const RandomKey key{.seed = stream, .purpose = Purpose::kTest, .step = static_cast<uint64_t>(step_)};
    for (size_t i = 0; i < ids.values().size(); ++i)
      ids.values()[i] = static_cast<int32_t>(random_below(key, i, static_cast<uint64_t>(config_.model.vocab_size)));
    return ids;
  }

  const Config& config_;
  Gpt model_;
  std::optional<NegativeSampler> sampler_;
  std::unique_ptr<OptimizerSet> optimizers_;
  int64_t step_ = 0;
};

std::vector<double> time_steps(RandomSession& session, int64_t negatives, const StepBenchOptions& options, StepBench& result) {
  constexpr int64_t kFewest = 5, kMost = 200;
  constexpr double kLongest = 3000;
  StepProfile profile(negatives);
  std::optional<ObserveTape> observe;
  if (options.profile) observe.emplace(profile);
  std::vector<double> times;
  const auto start = Clock::now();
  const auto enough = [&] {
    const auto done = static_cast<int64_t>(times.size());
    if (options.steps > 0) return done >= options.steps;
    return done >= kFewest && (1e3 * seconds_since(start) >= kLongest || done >= kMost);
  };
  while (!enough()) {
    const auto begin = Clock::now();
    session.step(options.profile ? &profile : nullptr);
    times.push_back(1e3 * seconds_since(begin));
  }
  result.profile = profile.by_time();
  return times;
}

// Of the first step of a run: a head that is untied later (train.untie_at) is measured tied.
StepShape bench_shape(const Config& config) {
  StepShape shape = step_shape(config);
  shape.model = config.model;
  return shape;
}

}  // namespace

StepBench bench_step(const Config& config, const StepBenchOptions& options) {
  constexpr double kGemmSeconds = 0.3;
  const StepShape shape = bench_shape(config);
  const std::vector<StepProduct> products = step_products(shape);
  StepBench result;
  const double before = measured_gemm_rate(products, kGemmSeconds);
  release_pool();
  reset_pool_peak();
  reset_peak_rss();
  std::vector<double> times;
  {
    const auto start = Clock::now();
    RandomSession session(config);
    session.step(nullptr);
    result.start_ms = 1e3 * seconds_since(start);
    session.step(nullptr);  // warm-up
    times = time_steps(session, shape.negatives, options, result);
    result.peak_rss_bytes = peak_rss_bytes();
    result.pool_peak_bytes = pool_stats().peak_bytes_in_use;
  }
  release_pool();
  const double after = measured_gemm_rate(products, kGemmSeconds);
  result.copy_gb_per_s = measured_copy_rate() / 1e9;
  release_pool();
  result.steps = static_cast<int64_t>(times.size());
  result.step_ms = median_of(times);
  result.low_ms = quantile_of(times, 0.1);
  result.high_ms = quantile_of(times, 0.9);
  result.parameters = parameter_count(config.model);
  result.tokens_per_step = shape.tokens() * config.train.grad_accum;
  result.flops_per_token = counted_flops_per_token(shape.model, shape.seq_len, shape.negatives);
  result.tokens_per_s = static_cast<double>(result.tokens_per_step) / (result.step_ms * 1e-3);
  result.gflops = result.tokens_per_s * result.flops_per_token / 1e9;
  result.sgemm_gflops = 2 / (1 / before + 1 / after) / 1e9;  // both take part by their time, as steps do
  return result;
}

}  // namespace rowan
