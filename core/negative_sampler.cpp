#include "core/negative_sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/error.h"

namespace rowan {

NegativeSampler::NegativeSampler(Kind kind, int64_t classes) : kind_(kind), classes_(classes) {
  ROWAN_CHECK(classes > 0 && classes <= std::numeric_limits<int32_t>::max(), "[negative_sampler] ", classes,
              " classes; expected 1 to 2^31 - 1");
  log_range_ = std::log(static_cast<double>(classes) + 1);
}

NegativeSampler NegativeSampler::uniform(int64_t classes) {
  return {Kind::kUniform, classes};
}

NegativeSampler NegativeSampler::log_uniform(int64_t classes) {
  return {Kind::kLogUniform, classes};
}

NegativeSampler NegativeSampler::weighted(std::span<const double> weights) {
  NegativeSampler sampler(Kind::kWeighted, std::ssize(weights));
  for (size_t i = 0; i < weights.size(); ++i)
    ROWAN_CHECK(weights[i] >= 0 && std::isfinite(weights[i]), "[negative_sampler] the weight of class ", i, " is ", weights[i]);
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  ROWAN_CHECK(total > 0 && std::isfinite(total), "[negative_sampler] the weights add up to ", total);
  for (const double w : weights) sampler.probability_.push_back(w / total);
  sampler.make_alias_table();
  return sampler;
}

// Columns of height 1 / V: each holds one class and, above it, the excess of another.
void NegativeSampler::make_alias_table() {
  const auto v = static_cast<size_t>(classes_);
  alias_.resize(v);
  keep_.resize(v);
  std::vector<int32_t> small, large;
  for (size_t i = 0; i < v; ++i) {
    keep_[i] = probability_[i] * static_cast<double>(v);
    alias_[i] = static_cast<int32_t>(i);
    (keep_[i] < 1 ? small : large).push_back(static_cast<int32_t>(i));
  }
  while (!small.empty() && !large.empty()) {
    const auto low = static_cast<size_t>(small.back()), high = static_cast<size_t>(large.back());
    small.pop_back();
    alias_[low] = large.back();
    keep_[high] -= 1 - keep_[low];
    if (keep_[high] >= 1) continue;
    small.push_back(large.back());
    large.pop_back();
  }
  // What is left differs from a full column by rounding alone, a class of weight 0 never among it.
  for (const auto* rest : {&small, &large})
    for (const int32_t i : *rest)
      if (probability_[static_cast<size_t>(i)] > 0) keep_[static_cast<size_t>(i)] = 1;
}

double NegativeSampler::probability(int32_t id) const {
  ROWAN_ASSERT(id >= 0 && id < classes_);
  if (kind_ == Kind::kUniform) return 1 / static_cast<double>(classes_);
  if (kind_ == Kind::kLogUniform) return std::log1p(1 / (static_cast<double>(id) + 1)) / log_range_;
  return probability_[static_cast<size_t>(id)];
}

int32_t NegativeSampler::draw_one(const RandomKey& key, uint64_t number) const {
  if (kind_ == Kind::kLogUniform) {
    // P(exp(u log(V+1)) in [c+1, c+2)) = q(c). Rounding may reach V + 1.
    const auto rank = static_cast<int64_t>(std::exp(random_uniform(key, 2 * number) * log_range_)) - 1;
    return static_cast<int32_t>(std::clamp<int64_t>(rank, 0, classes_ - 1));
  }
  const auto column = static_cast<size_t>(random_below(key, 2 * number, static_cast<uint64_t>(classes_)));
  if (kind_ == Kind::kUniform || random_uniform(key, 2 * number + 1) < keep_[column]) return static_cast<int32_t>(column);
  return alias_[column];
}

Negatives NegativeSampler::draw(int64_t count, const RandomKey& key) const {
  ROWAN_CHECK(count > 0, "[negative_sampler] ", count, " draws; expected at least 1");
  Negatives drawn;
  for (int64_t i = 0; i < count; ++i) {
    drawn.ids.push_back(draw_one(key, static_cast<uint64_t>(i)));
    drawn.log_expected.push_back(std::log(static_cast<double>(count) * probability(drawn.ids.back())));
  }
  return drawn;
}

}  // namespace rowan
