#include "train/sampler.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/rng.h"

namespace rowan {
namespace {

bool likelier(const Candidate& a, const Candidate& b) {
  return a.probability != b.probability ? a.probability > b.probability : a.id < b.id;
}

// Logits as double, the penalty applied; checked.
std::vector<double> penalized(std::span<const Real> logits, std::span<const int32_t> context, double penalty) {
  std::vector<double> out(logits.begin(), logits.end());
  bool finite = false;
  for (size_t i = 0; i < out.size(); ++i) {
    if (std::isnan(out[i]) || out[i] == HUGE_VAL) fail_data("[sampler] the logit of id ", i, " is ", out[i]);
    finite |= std::isfinite(out[i]);
  }
  if (!finite) fail_data("[sampler] none of ", out.size(), " logits is finite: there is nothing to choose from");
  if (penalty == 1) return out;
  std::vector<bool> done(out.size(), false);
  for (int32_t id : context) {
    ROWAN_CHECK(id >= 0 && id < static_cast<int64_t>(out.size()), "[sampler] id ", id, " of the context is outside [0, ",
                out.size(), ")");
    const size_t i = static_cast<size_t>(id);
    if (done[i]) continue;
    done[i] = true;
    out[i] = out[i] > 0 ? out[i] / penalty : out[i] * penalty;
  }
  return out;
}

// The smallest set of most likely candidates whose weights reach share * total, the likeliest first. Popping a heap costs V + k log
// V, where sorting all costs V log V for the sake of a few.
void keep_top_p(std::vector<Candidate>& all, double share) {
  double total = 0;
  for (const Candidate& c : all) total += c.probability;
  const auto heap_order = [](const Candidate& a, const Candidate& b) { return likelier(b, a); };
  std::make_heap(all.begin(), all.end(), heap_order);
  double sum = 0;
  auto end = all.end();
  while (end != all.begin() && sum < share * total) {
    std::pop_heap(all.begin(), end, heap_order);
    sum += (--end)->probability;
  }
  all.erase(all.begin(), end);
  std::reverse(all.begin(), all.end());
}

}  // namespace

void SamplerConfig::visit(FieldVisitor& v) {
  v("temperature", temperature, "logits are divided by it; 0: always the most likely token", at_least(0));
  v("top_k", top_k, "keep the k most likely tokens (0: all)", at_least(0));
  v("top_p", top_p, "keep the smallest set of most likely tokens whose probabilities reach this",
    Limits{.low = 0, .high = 1, .low_open = true});
  v("min_p", min_p, "drop tokens less likely than this times the most likely", between(0, 1));
  v("repetition_penalty", repetition_penalty, "makes tokens of the context less likely; 1: off", above(0));
  v("seed", seed, "seed of the draws", at_least(0));
}

void SamplerConfig::validate() const {
  ROWAN_CHECK(std::isfinite(temperature) && temperature >= 0, "[sampler] expected temperature >= 0, got ", temperature);
  ROWAN_CHECK(top_k >= 0, "[sampler] expected top_k >= 0 (0: all), got ", top_k);
  ROWAN_CHECK(top_p > 0 && top_p <= 1, "[sampler] expected top_p in (0, 1], got ", top_p);
  ROWAN_CHECK(min_p >= 0 && min_p <= 1, "[sampler] expected min_p in [0, 1], got ", min_p);
  ROWAN_CHECK(std::isfinite(repetition_penalty) && repetition_penalty > 0, "[sampler] expected repetition_penalty > 0, got ",
              repetition_penalty);
}

Sampler::Sampler(const SamplerConfig& config, uint32_t stream) : config_(config), stream_(stream) {
  config_.validate();
}

std::vector<Candidate> Sampler::candidates(std::span<const Real> logits, std::span<const int32_t> context) const {
  std::vector<double> values = penalized(logits, context, config_.repetition_penalty);
  const auto largest = std::max_element(values.begin(), values.end());  // the first of equals: the lowest id
  if (config_.temperature == 0) return {{static_cast<int32_t>(largest - values.begin()), 1}};
  const double top = *largest;
  std::vector<Candidate> all;
  all.reserve(values.size());
  for (size_t i = 0; i < values.size(); ++i)  // weights now, probabilities at the end: the largest weight is 1
    all.push_back({static_cast<int32_t>(i), std::exp((values[i] - top) / config_.temperature)});
  if (config_.top_k > 0 && config_.top_k < static_cast<int64_t>(all.size())) {
    std::partial_sort(all.begin(), all.begin() + config_.top_k, all.end(), likelier);
    all.resize(static_cast<size_t>(config_.top_k));
  }
  if (config_.top_p < 1) keep_top_p(all, config_.top_p);
  std::erase_if(all, [&](const Candidate& c) { return c.probability == 0 || c.probability < config_.min_p; });
  double total = 0;
  for (const Candidate& c : all) total += c.probability;
  for (Candidate& c : all) c.probability /= total;
  return all;
}

int32_t Sampler::next(std::span<const Real> logits, std::span<const int32_t> context, int64_t position) const {
  const std::vector<Candidate> all = candidates(logits, context);
  const RandomKey key{.seed = static_cast<uint64_t>(config_.seed), .purpose = Purpose::kSample, .site = stream_};
  double left = random_uniform(key, static_cast<uint64_t>(position));
  for (const Candidate& c : all) {
    left -= c.probability;
    if (left < 0) return c.id;
  }
  return all.back().id;  // the sum of the probabilities was a rounding error below 1
}

}  // namespace rowan
