#include "train/machine_rates.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "core/error.h"
#include "core/parallel.h"
#include "core/rng.h"
#include "core/tensor.h"

namespace rowan {
namespace {

using Clock = BenchClock;

// Ordinary numbers: zeros would draw less power, and let the processor run faster than a model does. One buffer serves as A, B
// and C of every product; only its size matters.
Tensor operand(int64_t elements, uint32_t site) {
  Tensor t({elements});
  fill_normal(t, {.purpose = Purpose::kTest, .site = site}, 0, 1);
  return t;
}

class ProductTimer {
 public:
  explicit ProductTimer(const std::vector<StepProduct>& products) : products_(products), samples_(products.size()) {
    int64_t a = 0, b = 0, c = 0;
    for (const StepProduct& p : products) {
      a = std::max(a, p.m * p.k);
      b = std::max(b, p.k * p.n);
      c = std::max(c, p.m * p.n);
    }
    a_ = operand(a, 1);
    b_ = operand(b, 2);
    c_ = Tensor({c});
  }

  double run(size_t i) {
    const StepProduct& p = products_[i];
    const auto start = Clock::now();
    gemm(p.op_a, p.op_b, p.m, p.n, p.k, 1, a_.data(), p.op_a == Op::kNone ? p.k : p.m, b_.data(), p.op_b == Op::kNone ? p.n : p.k,
         0, c_.data(), p.n);
    return seconds_since(start);
  }

  void sample(size_t i) { samples_[i].push_back(run(i)); }

  double rate() const {
    double flops = 0, seconds = 0;
    for (size_t i = 0; i < products_.size(); ++i) {
      const auto count = static_cast<double>(products_[i].count);
      flops += count * products_[i].flops();
      seconds += count * median_of(samples_[i]);
    }
    return flops / std::max(seconds, 1e-12);
  }

 private:
  const std::vector<StepProduct>& products_;
  std::vector<std::vector<double>> samples_;
  Tensor a_, b_, c_;
};

// At most `flops` operations: the longest side is halved until it fits. The product stays of the same kind.
StepProduct cut_to(StepProduct p, double flops) {
  while (p.flops() > flops) {
    int64_t& longest = p.m >= p.n && p.m >= p.k ? p.m : (p.n >= p.k ? p.n : p.k);
    if (longest < 2) break;
    longest /= 2;
  }
  return p;
}

}  // namespace

double quantile_of(std::vector<double> values, double fraction) {
  ROWAN_ASSERT(!values.empty() && fraction >= 0 && fraction <= 1);
  std::sort(values.begin(), values.end());
  const double place = fraction * static_cast<double>(values.size() - 1);
  const auto low = static_cast<size_t>(std::floor(place));
  const size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (place - static_cast<double>(low)) * (values[high] - values[low]);
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double median_of(std::vector<double> values) {
  return quantile_of(std::move(values), 0.5);
}

double measured_gemm_rate(const std::vector<StepProduct>& products, double seconds) {
  ROWAN_CHECK(!products.empty(), "[gemm rate] there are no products to measure");
  ProductTimer timer(products);
  for (size_t i = 0; i < products.size(); ++i) timer.run(i);  // wakes the threads, fills the caches
  const auto start = Clock::now();
  do {
    for (size_t i = 0; i < products.size(); ++i) timer.sample(i);
  } while (seconds_since(start) < seconds);
  return timer.rate();
}

double quick_gemm_rate(const StepShape& shape, double seconds) {
  constexpr double kSlowest = 2e10;  // FLOP/s that any machine is taken to reach: bounds the time, not the result
  std::vector<StepProduct> products;
  for (const StepProduct& p : step_products(shape))
    if (p.layer == (shape.model.n_layer > 0 ? "mlp.up" : "head")) products.push_back(cut_to(p, kSlowest * seconds / 6));
  return measured_gemm_rate(products, seconds / 3);
}

double measured_copy_rate(int64_t bytes, int repeats) {
  const int64_t n = bytes / static_cast<int64_t>(sizeof(Real));
  Tensor from = Tensor::full({n}, 1), to = Tensor::full({n}, 0);
  double best = 0;
  for (int i = 0; i < repeats; ++i) {
    const auto start = Clock::now();
    parallel_ranges(n, 1 << 16, [&](int64_t begin, int64_t end) {
      std::memcpy(to.data() + begin, from.data() + begin, static_cast<size_t>(end - begin) * sizeof(Real));
    });
    best = std::max(best, 2.0 * static_cast<double>(bytes) / std::max(seconds_since(start), 1e-12));
  }
  return best;
}

}  // namespace rowan
