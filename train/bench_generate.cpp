#include "train/bench_generate.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "core/error.h"
#include "core/rng.h"
#include "layers/gpt.h"
#include "train/machine_rates.h"

namespace rowan {
namespace {

using Clock = BenchClock;

Ids random_ids(int64_t count, int64_t vocab, uint64_t step) {
  Ids ids({1, count});
  const RandomKey key{.purpose = Purpose::kTest, .step = step};
  for (int64_t i = 0; i < count; ++i)
    ids[i] = static_cast<int32_t>(random_below(key, static_cast<uint64_t>(i), static_cast<uint64_t>(vocab)));
  return ids;
}

// Of all parameters but the tables that serve lookups alone: of those a token reads one row.
double weights_read(Gpt& model) {
  double elements = 0;
  for_each_parameter(model, [&](const std::string&, Parameter& p) {
    elements += static_cast<double>(p.kind() == GradKind::kDense ? p.value().size() : p.shape().back());
  });
  return elements * static_cast<double>(sizeof(Real));
}

// With the zeros filled in. One token more is generated, which warms up.
GenerateBench lengths(const GptConfig& model, const GenerateBenchOptions& options) {
  ROWAN_CHECK(options.prompt >= 0 && options.tokens >= 0, "[bench generate] a prompt of ", options.prompt, " and ", options.tokens,
              " tokens; expected none below 0");
  const int64_t positions = model.positions == "learned" ? model.max_seq_len : int64_t{1} << 30;
  GenerateBench result;
  result.prompt = options.prompt > 0 ? options.prompt : std::clamp<int64_t>(positions / 4, 1, 16);
  result.tokens = options.tokens > 0 ? options.tokens : std::clamp<int64_t>(positions - result.prompt - 1, 1, 128);
  if (result.prompt + result.tokens + 1 > positions)
    throw Error(join_text("[bench generate] a prompt of ", result.prompt, ", a token to warm up and ", result.tokens,
                          " measured ones are more than model.max_seq_len = ", positions, ", where learned positions end"),
                ErrorKind::kUsage, "give a smaller --prompt or --tokens, or --set model.max_seq_len=N");
  return result;
}

}  // namespace

GenerateBench bench_generate(const Config& config, const GenerateBenchOptions& options) {
  GenerateBench result = lengths(config.model, options);
  const int64_t vocab = config.model.vocab_size;
  std::vector<double> times;
  {
    Gpt model(config.model, static_cast<uint64_t>(config.train.seed));
    result.parameters = parameter_count(model);
    result.weight_bytes = weights_read(model);
    Gpt::Cache cache = model.make_cache(result.prompt + result.tokens + 1);
    const auto start = Clock::now();
    model.next_logits(random_ids(result.prompt, vocab, 0), cache);
    result.prompt_ms = 1e3 * seconds_since(start);
    model.next_logits(random_ids(1, vocab, 1), cache);  // warm-up
    for (int64_t i = 0; i < result.tokens; ++i) {
      const Ids token = random_ids(1, vocab, static_cast<uint64_t>(i) + 2);
      const auto begin = Clock::now();
      model.next_logits(token, cache);
      times.push_back(1e3 * seconds_since(begin));
    }
  }
  release_pool();
  result.copy_gb_per_s = measured_copy_rate() / 1e9;
  result.token_ms = median_of(times);
  result.low_ms = quantile_of(times, 0.1);
  result.high_ms = quantile_of(times, 0.9);
  return result;
}

}  // namespace rowan
