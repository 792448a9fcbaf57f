#include "train/sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"
#include "core/kernels/reduce.h"
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

// The ids of the k largest values, by id; ties to the lowest.
std::vector<int32_t> largest(const std::vector<double>& values, int64_t k) {
  std::vector<int32_t> ids(values.size());
  std::iota(ids.begin(), ids.end(), 0);
  if (k == 0 || k >= static_cast<int64_t>(ids.size())) return ids;
  const auto before = [&](int32_t a, int32_t b) {
    const double x = values[static_cast<size_t>(a)], y = values[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  };
  std::nth_element(ids.begin(), ids.begin() + k, ids.end(), before);
  ids.resize(static_cast<size_t>(k));
  std::sort(ids.begin(), ids.end());
  return ids;
}

// e^((value - top) / temperature) for these ids: 1 for the largest.
std::vector<Candidate> weigh(const std::vector<double>& values, const std::vector<int32_t>& ids, double top, double temperature) {
  constexpr double kNothing = -1000;  // e to this is 0 in float and double
  std::vector<Real> weights(ids.size());
  for (size_t i = 0; i < ids.size(); ++i)
    weights[i] = static_cast<Real>(std::max(kNothing, (values[static_cast<size_t>(ids[i])] - top) / temperature));
  exp_shifted(weights.data(), 0, weights.data(), static_cast<int64_t>(weights.size()));
  std::vector<Candidate> out;
  out.reserve(ids.size());
  for (size_t i = 0; i < ids.size(); ++i)
    if (weights[i] > 0) out.push_back({ids[i], static_cast<double>(weights[i])});
  return out;
}

double sum_of(std::span<const Candidate> all) {
  double sum = 0;
  for (const Candidate& c : all) sum += c.probability;
  return sum;
}

// Keeps the smallest set of the likeliest whose weights reach share of the whole. The last of that set is found by halving, like
// the median in quickselect, which costs O(V) where sorting costs O(V log V).
void keep_top_p(std::vector<Candidate>& all, double share) {
  std::vector<Candidate> work = all;
  const double needed = share * sum_of(all);
  double sum = 0;                          // of work[0, low), all of which are kept
  size_t low = 0, high = work.size() - 1;  // the last to keep is in work[low, high]
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    const auto begin = work.begin() + static_cast<int64_t>(low);
    std::nth_element(begin, work.begin() + static_cast<int64_t>(middle), work.begin() + static_cast<int64_t>(high) + 1, likelier);
    const double half = sum_of(std::span(work).subspan(low, middle + 1 - low));
    if (sum + half >= needed) {
      high = middle;
    } else {
      sum += half;
      low = middle + 1;
    }
  }
  const Candidate last = work[low];
  std::erase_if(all, [&](const Candidate& c) { return likelier(last, c); });
}

}  // namespace

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
  const std::vector<double> values = penalized(logits, context, config_.repetition_penalty);
  const auto best = std::max_element(values.begin(), values.end());  // the first of equals: the lowest id
  if (config_.temperature == 0) return {{static_cast<int32_t>(best - values.begin()), 1}};
  std::vector<Candidate> all = weigh(values, largest(values, config_.top_k), *best, config_.temperature);
  if (config_.top_p < 1) keep_top_p(all, config_.top_p);
  if (config_.min_p > 0) std::erase_if(all, [&](const Candidate& c) { return c.probability < config_.min_p; });
  const double total = sum_of(all);
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
