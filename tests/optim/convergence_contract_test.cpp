// Every registered rule finds minima: of a quadratic, along Rosenbrock's valley, and of a table that is read with Zipf's
// frequencies.
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "tests/support/contract.h"
#include "train/zipf_data.h"

namespace rowan {
namespace {

using test::cosine;
using test::give;

class ConvergenceContract : public test::OptimizerContract {};

// --- convergence: with the best of a few learning rates, falling to 0 along a cosine.

double best_of_learning_rates(const std::function<double(double lr)>& final_loss) {
  double best = std::numeric_limits<double>::infinity();
  for (double lr : {1e-3, 1e-2, 0.03, 0.1, 0.3, 1.0, 3.0}) {
    const double loss = final_loss(lr);
    if (std::isfinite(loss)) best = std::min(best, loss);
  }
  return best;
}

TEST_P(ConvergenceContract, finds_the_minimum_of_a_quadratic) {
  const Tensor curvature = test::random_tensor({4, 6}, 1, 0.2, 1.0), target = test::random_tensor({4, 6}, 2);
  const double best = best_of_learning_rates([&](double lr) {
    Parameter p(Tensor::zeros({4, 6}), some_kind());
    const auto rule = make(lr, {{"weight_decay", 0.0}});
    constexpr int64_t kSteps = 1500;
    double loss = 0;
    for (int64_t s = 1; s <= kSteps; ++s) {
      Tensor g({4, 6});
      loss = 0;
      for (int64_t i = 0; i < g.size(); ++i) {
        const double h = std::abs(curvature.data()[i]) + 0.1, off = p.value().data()[i] - target.data()[i];
        g.data()[i] = static_cast<Real>(h * off);
        loss += h * off * off;
      }
      give(p, g);
      rule->step("p", p, {.step = s, .lr_factor = cosine(s, kSteps)});
    }
    return loss;
  });
  EXPECT_LT(best, 1e-3);  // from about 24
}

TEST_P(ConvergenceContract, walks_down_rosenbrocks_valley) {
  const double best = best_of_learning_rates([&](double lr) {
    Parameter p(Tensor::from({1, 2}, std::vector<Real>{-1, 1}), some_kind());
    const auto rule = make(lr, {{"weight_decay", 0.0}});
    constexpr int64_t kSteps = 6000;
    for (int64_t s = 1; s <= kSteps; ++s) {
      const double x = p.value().data()[0], y = p.value().data()[1];
      const std::vector<Real> g = {static_cast<Real>(-2 * (1 - x) - 400 * x * (y - x * x)), static_cast<Real>(200 * (y - x * x))};
      give(p, Tensor::from({1, 2}, g));
      rule->step("p", p,
                 {.step = s,
                  .lr_factor = cosine(s, kSteps),
                  .grad_scale = 1 / std::max(1.0, static_cast<double>(std::hypot(g[0], g[1])))});
    }
    const double x = p.value().data()[0], y = p.value().data()[1];
    return (1 - x) * (1 - x) + 100 * (y - x * x) * (y - x * x);
  });
  EXPECT_LT(best, 0.1);  // from 4
}

TEST_P(ConvergenceContract, learns_a_table_whose_rows_are_read_with_zipf_frequencies) {
  if (!accepts(GradKind::kRowSparse)) return;
  constexpr int64_t kRows = 60, kTokens = 24, kSteps = 1600;
  const ZipfData data({.vocab_size = kRows});
  Tensor truth({kRows, 3});
  for (int32_t id = 0; id < kRows; ++id) data.truth(id, truth.row(id));
  const double best = best_of_learning_rates([&](double lr) {
    Parameter p(Tensor::zeros({kRows, 3}), GradKind::kRowSparse);
    const auto rule = make_frozen(lr, {{"weight_decay", 0.0}});
    for (int64_t s = 1; s <= kSteps; ++s) {
      std::vector<int32_t> ids;
      Tensor dy({kTokens, 3});
      for (int64_t t = 0; t < kTokens; ++t) {
        const int32_t id = data.id(ZipfSplit::kTrain, s, t);
        ids.push_back(id);
        for (int64_t j = 0; j < 3; ++j)
          dy.row(t)[static_cast<size_t>(j)] =
              (p.value().row(id)[static_cast<size_t>(j)] - truth.row(id)[static_cast<size_t>(j)]) / Real{8};
      }
      test::give_row_grad(p, ids, dy);
      rule->step("p", p, {.step = s, .lr_factor = cosine(s, kSteps)});
    }
    double worst = 0;
    for (int64_t i = 0; i < p.value().size(); ++i)
      worst = std::max(worst, std::abs(static_cast<double>(p.value().data()[i] - truth.data()[i])));
    return worst;
  });
  EXPECT_LT(best, 0.1);  // of truths with deviation 1
}

INSTANTIATE_TEST_SUITE_P(EveryRule, ConvergenceContract, ::testing::ValuesIn(optimizer_rules()),
                         [](const auto& rule) { return rule.param; });

}  // namespace
}  // namespace rowan
