// Rules of the Adam family against a plain loop in double, in every place of eps, and presets as the published formulas that they
// are named after: their counters, duplicates, decay and eps.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <vector>

#include "tests/support/optim.h"
#include "tests/support/random.h"

namespace rowan {
namespace {

using Text = std::string;

struct PlainAdam {
  Text eps_mode = "standard", counter = "global", duplicates = "sum", decay = "none";
  double lr = 0.05, eps = 0.01, weight_decay = 0, beta1 = 0.9, beta2 = 0.99;

  std::vector<double> w = {}, m = {}, v = {}, steps = {};
  int64_t width = 0, step = 0;

  void start(const Tensor& table) {
    width = table.shape()[1];
    w.assign(table.data(), table.data() + table.size());
    m.assign(w.size(), 0), v = m;
    steps.assign(w.size() / static_cast<size_t>(width), 0);
  }
  void touched(const std::vector<int32_t>& ids, const Tensor& dy) {
    ++step;
    std::map<int32_t, std::vector<double>> sums;
    std::map<int32_t, double> counts;
    for (size_t i = 0; i < ids.size(); ++i) {
      auto& sum = sums[ids[i]];
      sum.resize(static_cast<size_t>(width));
      for (int64_t j = 0; j < width; ++j)
        sum[static_cast<size_t>(j)] += static_cast<double>(dy.row(static_cast<int64_t>(i))[static_cast<size_t>(j)]);
      ++counts[ids[i]];
    }
    for (auto& [id, g] : sums) {
      const double t = counter == "row" ? ++steps[static_cast<size_t>(id)] : static_cast<double>(step);
      for (int64_t j = 0; j < width; ++j)
        element(static_cast<size_t>(id * width + j), g[static_cast<size_t>(j)] / (duplicates == "mean" ? counts[id] : 1), t);
    }
  }
  void element(size_t i, double g, double t) {
    if (decay == "coupled") g += weight_decay * w[i];
    if (decay == "touched") w[i] -= lr * weight_decay * w[i];
    m[i] = beta1 * m[i] + (1 - beta1) * g;
    v[i] = beta2 * v[i] + (1 - beta2) * g * g;
    const double mean = m[i] / (1 - std::pow(beta1, t)), square = v[i] / (1 - std::pow(beta2, t));
    if (eps_mode == "standard") w[i] -= lr * mean / (std::sqrt(square) + eps);
    if (eps_mode == "inside") w[i] -= lr * mean / std::sqrt(square + eps);
    // Kingma and Ba, "Adam", section 2, last paragraph: eps beside the uncorrected root.
    if (eps_mode == "hat")
      w[i] -= lr * std::sqrt(1 - std::pow(beta2, t)) / (1 - std::pow(beta1, t)) * m[i] / (std::sqrt(v[i]) + eps);
  }
};

// Both over the same batches, which repeat ids; a gradient of 0.01 to 1, so that eps counts.
void expect_same(const Text& rule, test::FieldValues fields, PlainAdam plain) {
  fields.insert({{"lr", plain.lr}, {"eps", plain.eps}, {"beta1", plain.beta1}, {"beta2", plain.beta2}});
  Parameter p(test::random_tensor({12, 5}, 3), GradKind::kRowSparse);
  plain.start(p.value());
  const auto optimizer = test::make_rule(rule, fields);
  optimizer->prepare("p", p);
  for (uint32_t s = 1; s <= 25; ++s) {
    const Ids random = test::random_ids({6}, 12, s);
    const std::vector<int32_t> ids(random.values().begin(), random.values().end());
    const Tensor dy = test::random_tensor({6, 5}, 100 + s, s % 2 ? 0.01 : 1);
    plain.touched(ids, dy);
    test::give_row_grad(p, ids, dy);
    optimizer->step("p", p, {.step = s});
  }
  for (size_t i = 0; i < plain.w.size(); ++i)
    EXPECT_NEAR(static_cast<double>(p.value().data()[i]), plain.w[i], kRealIsDouble ? 1e-12 : 3e-5) << rule << " element " << i;
}

TEST(AdamRules, have_eps_where_eps_mode_says) {
  for (const char* rule : {"adam", "adamw", "sparse_adam", "fbgemm_adam"})
    for (const char* mode : {"standard", "hat", "inside"})
      expect_same(rule, {{"eps_mode", Text(mode)}, {"untouched", Text("frozen")}, {"weight_decay", 0.0}}, {.eps_mode = mode});
}

TEST(Presets, pytorch_sparse_adam_has_a_global_counter_and_eps_beside_the_uncorrected_root) {
  // torch.optim.SparseAdam: denom = sqrt(v) + eps; step_size = lr * sqrt(1 - beta2^t) / (1 - beta1^t).
  expect_same("pytorch_sparse_adam", {}, {.eps_mode = "hat"});
}

TEST(Presets, tf_lazy_adam_has_a_global_counter_and_eps_beside_the_uncorrected_root) {
  expect_same("tf_lazy_adam", {}, {.eps_mode = "hat"});
  EXPECT_EQ(std::get<double>(test::fields_of(*test::make_rule("tf_lazy_adam")).at("eps")), 1e-7);
}

TEST(Presets, fbgemm_adam_decays_the_rows_it_touches) {
  expect_same("fbgemm_adam", {{"weight_decay", 0.3}}, {.decay = "touched", .weight_decay = 0.3});
}

TEST(Presets, dgl_sparse_adam_counts_by_row_and_takes_the_mean_of_duplicates) {
  expect_same("dgl_sparse_adam", {}, {.counter = "row", .duplicates = "mean"});
}

TEST(Presets, mxnet_lazy_adam_decays_through_the_gradient) {
  expect_same("mxnet_lazy_adam", {{"weight_decay", 0.3}}, {.eps_mode = "hat", .decay = "coupled", .weight_decay = 0.3});
}

TEST(Presets, fbgemm_rowwise_adagrad_decays_through_the_gradient_and_keeps_the_mean_of_squares) {
  const double lr = 0.1, eps = 1e-3, decay = 0.2;
  Parameter p(test::random_tensor({4, 3}, 3), GradKind::kRowSparse);
  std::vector<double> w(p.value().data(), p.value().data() + 12), h(4, 0.0);
  const auto rule = test::make_rule("fbgemm_rowwise_adagrad", {{"lr", lr}, {"eps", eps}, {"weight_decay", decay}});
  rule->prepare("p", p);
  for (uint32_t s = 1; s <= 20; ++s) {
    const auto id = static_cast<int32_t>(s % 3);  // row 3 is never read
    const Tensor dy = test::random_tensor({2, 3}, s);
    std::vector<double> g(3);
    for (size_t j = 0; j < 3; ++j)
      g[j] = static_cast<double>(dy.row(0)[j]) + static_cast<double>(dy.row(1)[j]) + decay * w[static_cast<size_t>(id) * 3 + j];
    h[static_cast<size_t>(id)] += (g[0] * g[0] + g[1] * g[1] + g[2] * g[2]) / 3;
    for (size_t j = 0; j < 3; ++j) w[static_cast<size_t>(id) * 3 + j] -= lr * g[j] / (std::sqrt(h[static_cast<size_t>(id)]) + eps);
    test::give_row_grad(p, {id, id}, dy);
    rule->step("p", p, {.step = s});
  }
  for (size_t i = 0; i < w.size(); ++i)
    EXPECT_NEAR(static_cast<double>(p.value().data()[i]), w[i], kRealIsDouble ? 1e-12 : 3e-5) << i;
}

}  // namespace
}  // namespace rowan
