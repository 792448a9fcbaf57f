#include "train/compare_statistics.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <numeric>

#include "core/error.h"
#include "core/rng.h"

namespace rowan {
namespace {

constexpr uint32_t kBootstrapSite = 1, kSecondSite = 2;

double standard_error(std::span<const double> values) {
  return deviation_of(values) / std::sqrt(static_cast<double>(values.size()));
}

boost::math::students_t student(std::span<const double> values) {
  return boost::math::students_t(static_cast<double>(values.size() - 1));
}

// Linear between the two nearest of sorted values.
double quantile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

double resampled_mean(std::span<const double> values, uint64_t seed, uint32_t site, int64_t resample) {
  const RandomKey key{.seed = seed, .purpose = Purpose::kBootstrap, .site = site, .step = static_cast<uint64_t>(resample)};
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i) sum += values[random_below(key, i, values.size())];
  return sum / static_cast<double>(values.size());
}

Interval middle_of(std::vector<double> values, double confidence) {
  std::sort(values.begin(), values.end());
  return {quantile(values, (1 - confidence) / 2), quantile(values, (1 + confidence) / 2)};
}

struct Welch {
  double mean = 0, error = 0, freedom = 0;
};

Welch welch_of(std::span<const double> a, std::span<const double> b) {
  const auto part = [](std::span<const double> v) { return std::pow(standard_error(v), 2); };
  const double va = part(a), vb = part(b);
  const auto n = [](std::span<const double> v) { return static_cast<double>(v.size() - 1); };
  return {.mean = mean_of(a) - mean_of(b),
          .error = std::sqrt(va + vb),
          .freedom = va + vb == 0 ? 1 : (va + vb) * (va + vb) / (va * va / n(a) + vb * vb / n(b))};
}

}  // namespace

double mean_of(std::span<const double> values) {
  ROWAN_ASSERT(!values.empty());
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double deviation_of(std::span<const double> values) {
  ROWAN_ASSERT(values.size() >= 2);
  const double mean = mean_of(values);
  double squares = 0;
  for (double v : values) squares += (v - mean) * (v - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

Interval t_interval(std::span<const double> values, double confidence) {
  const double half = boost::math::quantile(student(values), 0.5 + confidence / 2) * standard_error(values);
  return {mean_of(values) - half, mean_of(values) + half};
}

double t_test(std::span<const double> values) {
  const double mean = mean_of(values), error = standard_error(values);
  if (error == 0) return mean == 0 ? 1 : 0;
  return 2 * boost::math::cdf(boost::math::complement(student(values), std::abs(mean) / error));
}

Interval welch_interval(std::span<const double> a, std::span<const double> b, double confidence) {
  const Welch w = welch_of(a, b);
  const double half = w.error == 0 ? 0 : boost::math::quantile(boost::math::students_t(w.freedom), 0.5 + confidence / 2) * w.error;
  return {w.mean - half, w.mean + half};
}

double welch_test(std::span<const double> a, std::span<const double> b) {
  const Welch w = welch_of(a, b);
  if (w.error == 0) return w.mean == 0 ? 1 : 0;
  return 2 * boost::math::cdf(boost::math::complement(boost::math::students_t(w.freedom), std::abs(w.mean) / w.error));
}

Interval bootstrap_interval(std::span<const double> values, double confidence, int64_t resamples, uint64_t seed) {
  ROWAN_ASSERT(!values.empty() && resamples >= 1);
  std::vector<double> means;
  for (int64_t b = 0; b < resamples; ++b) means.push_back(resampled_mean(values, seed, kBootstrapSite, b));
  return middle_of(std::move(means), confidence);
}

Interval bootstrap_interval(std::span<const double> a, std::span<const double> b, double confidence, int64_t resamples,
                            uint64_t seed) {
  ROWAN_ASSERT(!a.empty() && !b.empty() && resamples >= 1);
  std::vector<double> means;
  for (int64_t i = 0; i < resamples; ++i)
    means.push_back(resampled_mean(a, seed, kBootstrapSite, i) - resampled_mean(b, seed, kSecondSite, i));
  return middle_of(std::move(means), confidence);
}

std::vector<double> holm_adjusted(std::span<const double> p_values) {
  std::vector<size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p_values[a] < p_values[b]; });
  std::vector<double> adjusted(p_values.size());
  double largest = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const auto left = static_cast<double>(order.size() - i);
    largest = std::max(largest, std::min(1.0, left * p_values[order[i]]));
    adjusted[order[i]] = largest;
  }
  return adjusted;
}

}  // namespace rowan
