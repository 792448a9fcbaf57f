// Evaluation over a whole split: every target once, no dropout, no tape. Nothing of it reaches the training state.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "layers/gpt.h"
#include "train/data_loader.h"
#include "train/tokenizer.h"

namespace rowan {

struct EvalResult {
  double loss = 0;           // nats a token, mean over all counted targets
  double perplexity = 0;     // e^loss
  double bits_per_byte = 0;  // all nats, in bits, over the bytes of text that the targets stand for
  int64_t tokens = 0;        // counted targets
  int64_t bytes = 0;
};

// max_tokens 0: the whole split. The result does not depend on batch_size beyond rounding.
EvalResult evaluate(Gpt& model, const std::shared_ptr<const Examples>& split, const Tokenizer& tokenizer, int64_t batch_size,
                    int64_t max_tokens = 0);
// The same, asked between batches whether to give up: nothing then.
std::optional<EvalResult> evaluate_unless(const std::function<bool()>& give_up, Gpt& model,
                                          const std::shared_ptr<const Examples>& split, const Tokenizer& tokenizer,
                                          int64_t batch_size, int64_t max_tokens);

}  // namespace rowan
