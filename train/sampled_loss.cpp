#include "train/sampled_loss.h"

#include "train/data_loader.h"

namespace rowan {

std::vector<int64_t> count_targets(const std::shared_ptr<const Examples>& split, int64_t vocab, int64_t max_targets) {
  constexpr int64_t kRows = 64;
  std::vector<int64_t> counts(static_cast<size_t>(vocab), 0);
  EvalBatches batches(split, kRows, max_targets);
  for (Batch batch; batches.next(batch);) {
    check_ids(batch.targets, vocab, "data", kIgnored);
    for (const int32_t target : batch.targets.values())
      if (target != kIgnored) ++counts[static_cast<size_t>(target)];
  }
  return counts;
}

std::optional<NegativeSampler> make_negative_sampler(const Config& config, const std::shared_ptr<const Examples>& train) {
  if (config.train.loss != "sampled") return std::nullopt;
  check_negatives(config);
  const int64_t vocab = config.model.vocab_size;
  const std::string& sampler = config.train.sampled.sampler;
  if (sampler == "uniform") return NegativeSampler::uniform(vocab);
  if (sampler == "log_uniform") return NegativeSampler::log_uniform(vocab);
  std::vector<double> weights;
  for (const int64_t count : count_targets(train, vocab, kMostCounted)) weights.push_back(static_cast<double>(count) + 1);
  return NegativeSampler::weighted(weights);
}

RandomKey negatives_key(const Config& config, uint64_t number) {
  return {.seed = static_cast<uint64_t>(config.train.seed), .purpose = Purpose::kNegatives, .step = number};
}

void check_negatives(const Config& config) {
  const int64_t vocab = config.model.vocab_size, negatives = config.train.sampled.negatives;
  if (config.train.loss != "sampled" || vocab == 0 || negatives < vocab) return;
  throw Error(join_text("[config] train.sampled.negatives = ", negatives, " is not below the vocabulary of ", vocab,
                        " ids: drawing that many costs more than the full softmax"),
              ErrorKind::kUsage, "lower train.sampled.negatives, or set train.loss = \"full\"");
}

}  // namespace rowan
