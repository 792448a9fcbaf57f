#include "train/evaluate.h"

#include <cmath>
#include <numbers>

namespace rowan {

EvalResult evaluate(Gpt& model, const std::shared_ptr<const Examples>& split, const Tokenizer& tokenizer, int64_t batch_size,
                    int64_t max_tokens) {
  return *evaluate_unless([] { return false; }, model, split, tokenizer, batch_size, max_tokens);
}

std::optional<EvalResult> evaluate_unless(const std::function<bool()>& give_up, Gpt& model,
                                          const std::shared_ptr<const Examples>& split, const Tokenizer& tokenizer,
                                          int64_t batch_size, int64_t max_tokens) {
  const NoGrad no_grad;
  EvalResult result;
  double nats = 0;
  EvalBatches batches(split, batch_size, max_tokens);
  for (Batch batch; batches.next(batch);) {
    if (give_up()) return std::nullopt;
    HeadStats stats;
    model.loss(batch.inputs, batch.targets, 1.0, {}, &stats);
    nats += stats.loss_sum;
    result.tokens += stats.counted;
    result.bytes += tokenizer.count_bytes(batch.targets.values());
  }
  ROWAN_CHECK(result.tokens > 0, "[evaluate] the split has no targets");
  result.loss = nats / static_cast<double>(result.tokens);
  result.perplexity = std::exp(result.loss);
  result.bits_per_byte = result.bytes == 0 ? 0 : nats / std::numbers::ln2 / static_cast<double>(result.bytes);
  return result;
}

}  // namespace rowan
