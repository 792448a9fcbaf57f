// Sampler: picks the next token from the model's logits.
//
// In this order, as Hugging Face's transformers does: repetition penalty, temperature, top-k, top-p, min-p. Sums are in double,
// ties go to the lowest id, and the random number is a function of (seed, stream, position), so a text depends on nothing but the
// model, its settings and its prompt.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/real.h"

namespace rowan {

struct SamplerConfig {
  double temperature = 1;         // logits are divided by it; 0: always the most likely token
  int64_t top_k = 0;              // keep the k most likely (0: all)
  double top_p = 1;               // keep the smallest set of most likely tokens whose probabilities reach p
  double min_p = 0;               // drop what is less likely than min_p times the most likely
  double repetition_penalty = 1;  // a token of the context: positive logits are divided by it, negative ones multiplied (CTRL,
                                  // Keskar et al. 2019), once however often it stands there
  int64_t seed = 1;

  void validate() const;  // Error naming the value that is out of range
};

struct Candidate {
  int32_t id;
  double probability;
};

class Sampler {
 public:
  explicit Sampler(const SamplerConfig& config, uint32_t stream = 0);  // validates

  // logits (V). `context`: the tokens so far, prompt included. `position`: number of the token to be made. Error when a logit is
  // NaN or +infinity, or all are -infinity.
  int32_t next(std::span<const Real> logits, std::span<const int32_t> context, int64_t position) const;

  // What next() draws from: the tokens that are left, by id, and their probabilities, which add up to 1.
  std::vector<Candidate> candidates(std::span<const Real> logits, std::span<const int32_t> context) const;

 private:
  SamplerConfig config_;
  uint32_t stream_;
};

}  // namespace rowan
