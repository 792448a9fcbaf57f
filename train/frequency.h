// Frequency: how often and how lately training reads a token, and what a model and its table look like by that.
//
// Tokens fall into buckets by the binary logarithm of a count: bucket 0 was never seen, bucket b >= 1 was seen 2^(b-1) to 2^b - 1
// times. Counts are those of the whole training, found by going through the data once more without a model.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "layers/gpt.h"
#include "train/data_loader.h"

namespace rowan {

int bucket_of(int64_t count);
std::string bucket_text(int bucket);  // "never seen", "1", "2-3", "4-7", ...

struct TokenCounts {
  std::vector<int64_t> as_input, as_target;  // (V) occurrences
  std::vector<int64_t> touches;              // (V) steps that read the token
  std::vector<int64_t> first_touch;          // (V) the first of them; 0: none
  std::vector<int64_t> last_touch;           // (V) the last of them; 0: none
  int64_t steps = 0;
  std::string data_digest;  // of all inputs and targets in their order

  int input_bucket(int32_t id) const { return bucket_of(as_input[static_cast<size_t>(id)]); }
  int target_bucket(int32_t id) const { return bucket_of(as_target[static_cast<size_t>(id)]); }
};

// Of `steps` steps of `micro_batches` batches each, from the loader's first sequence on. The loader stays where it is.
TokenCounts count_training(const DataLoader& loader, int64_t vocab, int64_t steps, int64_t micro_batches);

struct BucketLoss {
  int64_t tokens = 0;  // counted targets
  double loss = 0;     // nats a target, mean
  // Data whose answers are known: mean over targets of KL(truth || model) for the id that was read, in nats. The sampled targets do
  // not enter it, so it is 0 for the perfect model; loss is then the entropy.
  double divergence = 0;

  // Of all buckets: visitor(what is counted, means over it...).
  template <class Bucket, class Visitor>
  static void visit(Bucket& b, const Visitor& v) {
    v(b.tokens, b.loss, b.divergence);
  }
};

struct FrequencyLoss {
  double loss = 0;  // the same as evaluate() gives
  int64_t tokens = 0;
  bool truth_known = false;
  double lowest_loss = 0;  // where the truth is known: its entropy
  double divergence = 0;   // the same, over all targets
  std::map<int, BucketLoss> by_input, by_target;
};

// A whole split, or its first max_tokens targets (0: all).
FrequencyLoss evaluate_by_frequency(Gpt& model, const std::shared_ptr<const Examples>& split, const TokenCounts& counts,
                                    int64_t batch_size, int64_t max_tokens = 0);

struct BucketRows {
  int64_t rows = 0;
  double norm = 0;       // |w|, mean over the rows
  double age = 0;        // steps since the last touch at the end, mean over the rows; of rows never touched, all steps
  double touch_gap = 0;  // steps from one touch to the next, mean over the rows that were touched more than once; 0 without any

  template <class Bucket, class Visitor>
  static void visit(Bucket& b, const Visitor& v) {
    v(b.rows, b.norm, b.age, b.touch_gap);
  }
};

// Of a (V,D) table at the end of training, by the tokens' counts as inputs.
std::map<int, BucketRows> rows_by_frequency(const Tensor& table, const TokenCounts& counts);

}  // namespace rowan
