// What a run with train.loss = "sampled" draws its negatives from.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/negative_sampler.h"
#include "train/config.h"
#include "train/examples.h"

namespace rowan {

// How often each id in [0, vocab) is a counted target in the split, each target once; of its first max_targets (0: all).
std::vector<int64_t> count_targets(const std::shared_ptr<const Examples>& split, int64_t vocab, int64_t max_targets = 0);

// nullopt with train.loss = "full". config.model.vocab_size is known. "unigram" goes through the training data once, through its
// first kMostCounted targets at most; every class counts once more than it is seen, so that each can be drawn.
inline constexpr int64_t kMostCounted = int64_t{1} << 27;
std::optional<NegativeSampler> make_negative_sampler(const Config& config, const std::shared_ptr<const Examples>& train);

// The key of one micro-batch's draws. `number` counts micro-batches over the whole run.
RandomKey negatives_key(const Config& config, uint64_t number);

// Error (kUsage) unless train.sampled.negatives is below the vocabulary. Nothing to check while that is not known, or unless
// sampled.
void check_negatives(const Config& config);

}  // namespace rowan
