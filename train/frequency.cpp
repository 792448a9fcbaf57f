#include "train/frequency.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "core/ops/head_cross_entropy.h"
#include "train/digest.h"
#include "train/zipf_data.h"

namespace rowan {
namespace {

// KL(truth || model) at every place of a batch, where the data says what the truth is.
class Divergences {
 public:
  Divergences(const ZipfData& data, const Tensor& head)
      : data_(data), rows_({std::min(data.config().answers, head.shape()[0]), head.shape()[1]}) {
    std::copy_n(head.data(), rows_.size(), rows_.data());
  }

  // hidden (B,T,D), log_sum_exp (B*T) over the whole vocabulary
  std::vector<double> of(const Tensor& hidden, const Ids& inputs, const std::vector<float>& log_sum_exp) const {
    const Tensor logits = head_logits(hidden, rows_);  // (B,T,A)
    std::vector<double> out(log_sum_exp.size(), 0.0);
    for (size_t i = 0; i < out.size(); ++i) {
      for (int32_t a = 0; a < rows_.shape()[0]; ++a) {
        const double truth = data_.target_probability(inputs[static_cast<int64_t>(i)], a);
        const double z = static_cast<double>(logits.row(static_cast<int64_t>(i))[static_cast<size_t>(a)]);
        if (truth > 0) out[i] += truth * (std::log(truth) - z + static_cast<double>(log_sum_exp[i]));
      }
    }
    return out;
  }

 private:
  const ZipfData& data_;
  Tensor rows_;  // (A,D): the head's, of the answers
};

void add_to(BucketLoss& bucket, double loss, double divergence) {
  ++bucket.tokens;
  bucket.loss += loss;
  bucket.divergence += divergence;
}

void take_means(std::map<int, BucketLoss>& buckets) {
  for (auto& [number, b] : buckets) {
    b.loss /= static_cast<double>(b.tokens);
    b.divergence /= static_cast<double>(b.tokens);
  }
}

void count_batch(const Batch& batch, int64_t step, TokenCounts& counts, Digester& digest) {
  for (int32_t id : batch.inputs.values()) {
    const auto at = static_cast<size_t>(id);
    ++counts.as_input[at];
    if (counts.last_touch[at] != step) ++counts.touches[at];
    if (counts.first_touch[at] == 0) counts.first_touch[at] = step;
    counts.last_touch[at] = step;
  }
  for (int32_t id : batch.targets.values())
    if (id != kIgnored) ++counts.as_target[static_cast<size_t>(id)];
  digest.update(batch.inputs.values().data(), batch.inputs.values().size_bytes());
  digest.update(batch.targets.values().data(), batch.targets.values().size_bytes());
}

}  // namespace

int bucket_of(int64_t count) {
  ROWAN_ASSERT(count >= 0);
  return std::bit_width(static_cast<uint64_t>(count));
}

std::string bucket_text(int bucket) {
  if (bucket == 0) return "never seen";
  if (bucket == 1) return "1";
  return join_text(int64_t{1} << (bucket - 1), "-", (int64_t{1} << bucket) - 1);
}

TokenCounts count_training(const DataLoader& loader, int64_t vocab, int64_t steps, int64_t micro_batches) {
  const auto v = static_cast<size_t>(vocab);
  TokenCounts counts{.as_input = std::vector<int64_t>(v),
                     .as_target = std::vector<int64_t>(v),
                     .touches = std::vector<int64_t>(v),
                     .first_touch = std::vector<int64_t>(v),
                     .last_touch = std::vector<int64_t>(v),
                     .steps = steps,
                     .data_digest = ""};
  DataLoader reader = loader;
  reader.seek(0);
  Digester digest;
  for (int64_t step = 1; step <= steps; ++step)
    for (int64_t i = 0; i < micro_batches; ++i) count_batch(reader.next(), step, counts, digest);
  counts.data_digest = digest.text();
  return counts;
}

FrequencyLoss evaluate_by_frequency(Gpt& model, const std::shared_ptr<const Examples>& split, const TokenCounts& counts,
                                    int64_t batch_size, int64_t max_tokens) {
  const NoGrad no_grad;
  FrequencyLoss result;
  const auto* zipf = dynamic_cast<const ZipfExamples*>(split.get());
  const Variable head(model.head().value());
  std::optional<Divergences> divergences;
  if (zipf != nullptr) divergences.emplace(zipf->data(), head.value());
  EvalBatches batches(split, batch_size, max_tokens);
  for (Batch batch; batches.next(batch);) {
    std::vector<float> losses, log_sums;
    HeadStats stats{.token_loss = &losses, .log_sum_exp = &log_sums};
    const Variable hidden = model.hidden(batch.inputs, {});
    head_cross_entropy(hidden, head, batch.targets, 1.0, &stats);
    std::vector<double> known(losses.size(), 0.0);
    if (divergences) known = divergences->of(hidden.value(), batch.inputs, log_sums);
    result.loss += stats.loss_sum;
    result.tokens += stats.counted;
    for (size_t i = 0; i < losses.size(); ++i) {
      const int32_t input = batch.inputs[static_cast<int64_t>(i)], target = batch.targets[static_cast<int64_t>(i)];
      if (target == kIgnored) continue;
      add_to(result.by_input[counts.input_bucket(input)], static_cast<double>(losses[i]), known[i]);
      add_to(result.by_target[counts.target_bucket(target)], static_cast<double>(losses[i]), known[i]);
      result.divergence += known[i];
    }
  }
  ROWAN_CHECK(result.tokens > 0, "[evaluate] the split has no targets");
  take_means(result.by_input);
  take_means(result.by_target);
  result.loss /= static_cast<double>(result.tokens);
  result.divergence /= static_cast<double>(result.tokens);
  result.truth_known = zipf != nullptr;
  if (zipf != nullptr) result.lowest_loss = zipf->data().entropy();
  return result;
}

std::map<int, BucketRows> rows_by_frequency(const Tensor& table, const TokenCounts& counts) {
  std::map<int, BucketRows> buckets;
  std::map<int, int64_t> touched_again;
  for (int64_t id = 0; id < table.shape()[0]; ++id) {
    const auto at = static_cast<size_t>(id);
    const int number = bucket_of(counts.as_input[at]);
    BucketRows& b = buckets[number];
    ++b.rows;
    double squares = 0;
    for (Real w : table.row(id)) squares += static_cast<double>(w) * static_cast<double>(w);
    b.norm += std::sqrt(squares);
    b.age += static_cast<double>(counts.steps - counts.last_touch[at]);
    if (counts.touches[at] < 2) continue;
    b.touch_gap +=
        static_cast<double>(counts.last_touch[at] - counts.first_touch[at]) / static_cast<double>(counts.touches[at] - 1);
    ++touched_again[number];
  }
  for (auto& [number, b] : buckets) {
    b.norm /= static_cast<double>(b.rows);
    b.age /= static_cast<double>(b.rows);
    if (touched_again[number] > 0) b.touch_gap /= static_cast<double>(touched_again[number]);
  }
  return buckets;
}

}  // namespace rowan
