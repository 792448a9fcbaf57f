// What every registered rule promises, whoever wrote it. Rules are taken from the registry: there is no list to keep here, but for
// one test that names the rules the library must have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numbers>

#include "optim/groups.h"
#include "optim/row_optimizer.h"
#include "tests/support/compare.h"
#include "tests/support/optim.h"
#include "tests/support/random.h"

namespace rowan {
namespace {

TEST(Rules, the_library_has_the_expected_ones) {
  const std::vector<std::string> rules = optimizer_rules();
  for (const char* expected : {"adamw", "sgd", "sparse_adam"}) EXPECT_THAT(rules, ::testing::Contains(expected));
}

class OptimizerContract : public ::testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Optimizer> make(double lr = 0.01, const test::FieldValues& more = {}) const {
    test::FieldValues fields = more;
    fields["lr"] = lr;
    return test::make_rule(GetParam(), fields);
  }
  bool accepts(GradKind kind) const {
    Parameter p(Tensor::zeros({3, 2}), kind);
    try {
      make()->prepare("p", p);
      return true;
    } catch (const Error&) {
      return false;
    }
  }
  GradKind some_kind() const { return accepts(GradKind::kDense) ? GradKind::kDense : GradKind::kRowSparse; }
  // With the axis `untouched` set to frozen where the rule has it.
  std::unique_ptr<Optimizer> make_frozen(double lr = 0.01, test::FieldValues more = {}) const {
    if (dynamic_cast<RowOptimizer*>(make().get()) != nullptr) more["untouched"] = std::string("frozen");
    return make(lr, more);
  }
};

void give(Parameter& p, const Tensor& grad) {
  if (p.kind() == GradKind::kDense) return test::give_dense_grad(p, grad);
  std::vector<int32_t> ids(static_cast<size_t>(p.shape()[0]));
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i);
  test::give_row_grad(p, ids, grad);
}

Tensor rows_of(const std::vector<Real>& values, int64_t width) {  // row i holds values[i]
  Tensor t({static_cast<int64_t>(values.size()), width});
  for (size_t i = 0; i < values.size(); ++i) std::fill_n(t.data() + static_cast<int64_t>(i) * width, width, values[i]);
  return t;
}

std::vector<int32_t> plain(const Ids& ids) {
  return {ids.values().begin(), ids.values().end()};
}

std::vector<Tensor> state_tensors(Optimizer& rule) {
  test::MemoryState state;
  rule.visit_state(state);
  std::vector<Tensor> out;
  for (const auto& entry : state.values())
    if (const Tensor* t = std::get_if<Tensor>(&entry.second)) out.push_back(*t);
  return out;
}

TEST_P(OptimizerContract, dense_and_row_sparse_agree_bitwise_when_every_row_is_touched) {
  if (!accepts(GradKind::kDense) || !accepts(GradKind::kRowSparse)) {
    EXPECT_TRUE(accepts(GradKind::kDense) || accepts(GradKind::kRowSparse));
    return;
  }
  for (const bool frozen : {false, true})
    for (int64_t width : {1, 5, 16, 67, 3000}) {
      const auto dense_rule = frozen ? make_frozen() : make(), sparse_rule = frozen ? make_frozen() : make();
      const Tensor init = test::random_tensor({9, width}, 1);
      Parameter dense(init.clone()), sparse(init.clone(), GradKind::kRowSparse);
      for (uint32_t s = 1; s <= 6; ++s) {
        const Tensor g = test::random_tensor({9, width}, 10 + s);
        give(dense, g);
        give(sparse, g);
        dense_rule->step("p", dense, {.step = s, .lr_factor = 1.0 / s, .grad_scale = s % 2 ? 1.0 : 0.7});
        sparse_rule->step("p", sparse, {.step = s, .lr_factor = 1.0 / s, .grad_scale = s % 2 ? 1.0 : 0.7});
        ASSERT_TRUE(test::same_bits(dense.value(), sparse.value())) << "width " << width << ", step " << s;
      }
    }
}

TEST_P(OptimizerContract, rows_that_are_never_touched_keep_their_bits_when_frozen) {
  if (!accepts(GradKind::kRowSparse)) return;
  const auto rule = make_frozen(0.1);
  Parameter p(test::random_tensor({40, 7}, 1), GradKind::kRowSparse);
  const Tensor before = p.value().clone();
  for (uint32_t s = 1; s <= 8; ++s) {
    test::give_row_grad(p, {3, 17, 3, 39}, test::random_tensor({4, 7}, s));
    rule->step("p", p, {.step = s});
  }
  for (int64_t row = 0; row < 40; ++row) {
    const bool touched = row == 3 || row == 17 || row == 39;
    const bool same = std::memcmp(p.value().row(row).data(), before.row(row).data(), 7 * sizeof(Real)) == 0;
    EXPECT_EQ(same, !touched) << "row " << row;
  }
}

TEST_P(OptimizerContract, repeated_ids_are_summed_before_anything_else) {
  if (!accepts(GradKind::kRowSparse)) return;
  const auto once = make_frozen(), thrice = make_frozen();
  const Tensor init = test::random_tensor({5, 6}, 1);
  Parameter a(init.clone(), GradKind::kRowSparse), b(init.clone(), GradKind::kRowSparse);
  for (int s = 1; s <= 4; ++s) {
    const Real g = static_cast<Real>(s % 2 ? 0.5 : -1.25);  // powers of two add exactly
    test::give_row_grad(a, {2}, Tensor::full({1, 6}, g));
    test::give_row_grad(b, {2, 2, 2}, rows_of({4 * g, -2 * g, -g}, 6));
    once->step("p", a, {.step = s});
    thrice->step("p", b, {.step = s});
    ASSERT_TRUE(test::same_bits(a.value(), b.value())) << "step " << s;
  }
}

TEST_P(OptimizerContract, an_empty_batch_changes_no_row) {
  if (!accepts(GradKind::kRowSparse)) return;
  const auto rule = make_frozen();
  Parameter p(test::random_tensor({5, 6}, 1), GradKind::kRowSparse);
  test::give_row_grad(p, {1}, test::random_tensor({1, 6}, 2));
  rule->step("p", p, {.step = 1});
  const Tensor before = p.value().clone();
  const std::vector<Tensor> state = state_tensors(*rule);
  test::give_row_grad(p, {}, Tensor({0, 6}));
  rule->step("p", p, {.step = 2});
  EXPECT_TRUE(test::same_bits(p.value(), before));
  const std::vector<Tensor> after = state_tensors(*rule);
  for (size_t i = 0; i < state.size(); ++i)
    if (state[i].shape().rows() == 5) {
      EXPECT_TRUE(test::same_bits(after[i], state[i]));
    }
  EXPECT_FALSE(p.has_grad());
}

TEST_P(OptimizerContract, no_gradient_is_no_step) {
  const auto rule = make();
  Parameter p(test::random_tensor({5, 6}, 1), some_kind());
  rule->prepare("p", p);
  test::MemoryState before, after;
  rule->visit_state(before);
  const Tensor value = p.value().clone();
  rule->step("p", p, {.step = 1});
  rule->visit_state(after);
  EXPECT_TRUE(test::same_bits(p.value(), value));
  EXPECT_EQ(std::get<int64_t>(after.values().at("p/step")), std::get<int64_t>(before.values().at("p/step")));
}

TEST_P(OptimizerContract, a_bad_id_or_a_non_finite_gradient_changes_nothing_at_all) {
  Parameter p(test::random_tensor({5, 6}, 1), some_kind());
  OptimizerSet set({}, make(), {{"p", &p}});
  give(p, test::random_tensor({5, 6}, 2));
  set.clip_and_step(1, {.step = 1});
  const Tensor value = p.value().clone();
  const std::vector<Tensor> state = state_tensors(set.optimizer_of("p"));
  Tensor bad = test::random_tensor({5, 6}, 3);
  bad.data()[13] = std::numeric_limits<Real>::infinity();
  give(p, bad);
  EXPECT_FALSE(set.clip_and_step(1, {.step = 2}).finite);
  p.var.clear_grad();
  if (p.kind() == GradKind::kRowSparse) {
    EXPECT_THROW(test::give_row_grad(p, {1, 5}, Tensor::zeros({2, 6})), Error);
    EXPECT_THROW(test::give_row_grad(p, {-1}, Tensor::zeros({1, 6})), Error);
    EXPECT_FALSE(p.has_grad());
  }
  set.clip_and_step(1, {.step = 2});
  EXPECT_TRUE(test::same_bits(p.value(), value));
  const std::vector<Tensor> after = state_tensors(set.optimizer_of("p"));
  for (size_t i = 0; i < state.size(); ++i) EXPECT_TRUE(test::same_bits(after[i], state[i]));
}

TEST_P(OptimizerContract, continues_bitwise_after_loading_into_one_with_other_hyperparameters) {
  for (const GradKind kind : {GradKind::kDense, GradKind::kRowSparse}) {
    if (!accepts(kind)) continue;
    const auto run = [&](bool interrupt) {
      Parameter p(test::random_tensor({12, 5}, 1), kind);
      auto set = std::make_unique<OptimizerSet>(std::vector<ParameterGroup>{}, make(0.02), std::vector<NamedParameter>{{"p", &p}});
      for (uint32_t s = 1; s <= 10; ++s) {
        if (interrupt && s == 5) {
          test::MemoryState state;
          set->visit_state(state);
          state.load();
          auto other = std::make_unique<OptimizerSet>(std::vector<ParameterGroup>{}, make(0.7, {{"decay_vectors", true}}),
                                                      std::vector<NamedParameter>{{"p", &p}});
          other->visit_state(state);
          set = std::move(other);
        }
        if (kind == GradKind::kDense) {
          test::give_dense_grad(p, test::random_tensor({12, 5}, 10 + s));
        } else {
          test::give_row_grad(p, plain(test::random_ids({6}, 12, s)), test::random_tensor({6, 5}, 10 + s));
        }
        set->clip_and_step(1, {.step = s, .lr_factor = 1.0 / s});
      }
      return p.value().clone();
    };
    EXPECT_TRUE(test::same_bits(run(true), run(false)));
  }
}

TEST_P(OptimizerContract, same_bits_for_any_thread_count) {
  for (const GradKind kind : {GradKind::kDense, GradKind::kRowSparse}) {
    if (!accepts(kind)) continue;
    EXPECT_TRUE(test::same_bits_for_any_thread_count([&] {
      Parameter p(test::random_tensor({1500, 67}, 1), kind);
      const auto rule = make();
      for (uint32_t s = 1; s <= 2; ++s) {
        if (kind == GradKind::kDense) {
          test::give_dense_grad(p, test::random_tensor({1500, 67}, 10 + s));
        } else {
          test::give_row_grad(p, plain(test::random_ids({900}, 1500, s)), test::random_tensor({900, 67}, 10 + s));
        }
        rule->step("p", p, {.step = s, .grad_scale = 0.9});
      }
      std::vector<Tensor> out = state_tensors(*rule);
      out.push_back(p.value());
      return out;
    }));
  }
}

// Every width from 1 to 67 passes through every length of a vector loop's tail. The same row gives the same bits wherever it stands
// in a table; and for elementwise rules an element gives the same bits in a row of any width.
TEST_P(OptimizerContract, vector_body_and_scalar_tail_agree_for_every_width) {
  const GradKind kind = some_kind();
  const auto probe = make();
  const auto* row_rule = dynamic_cast<const RowOptimizer*>(probe.get());
  for (int64_t width = 1; width <= 67; ++width) {
    const Tensor init = test::random_tensor({3, width}, 1);
    Parameter table(init.clone(), kind), last(Tensor::from({1, width}, init.row(2)), kind),
        column(init.reshape({3 * width, 1}).clone(), kind);
    const auto a = make(), b = make(), c = make();
    for (uint32_t s = 1; s <= 3; ++s) {
      const Tensor g = test::random_tensor({3, width}, 10 + s);
      give(table, g);
      give(last, Tensor::from({1, width}, g.row(2)));
      give(column, g.reshape({3 * width, 1}));
      a->step("p", table, {.step = s});
      b->step("p", last, {.step = s});
      c->step("p", column, {.step = s});
    }
    if (row_rule == nullptr) continue;
    EXPECT_TRUE(test::same_bits(Tensor::from({1, width}, table.value().row(2)), last.value())) << "width " << width;
    if (!row_rule->elementwise()) continue;
    EXPECT_TRUE(test::same_bits(table.value(), column.value().reshape({3, width}))) << "width " << width;
  }
}

// --- convergence: with the best of a few learning rates, falling to 0 along a cosine.

double best_of_learning_rates(const std::function<double(double lr)>& final_loss) {
  double best = std::numeric_limits<double>::infinity();
  for (double lr : {1e-3, 1e-2, 0.03, 0.1, 0.3, 1.0}) {
    const double loss = final_loss(lr);
    if (std::isfinite(loss)) best = std::min(best, loss);
  }
  return best;
}

double cosine(int64_t step, int64_t steps) {
  return 0.5 * (1 + std::cos(std::numbers::pi * static_cast<double>(step) / static_cast<double>(steps)));
}

TEST_P(OptimizerContract, finds_the_minimum_of_a_quadratic) {
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

TEST_P(OptimizerContract, walks_down_rosenbrocks_valley) {
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

TEST_P(OptimizerContract, learns_a_table_whose_rows_are_read_with_zipf_frequencies) {
  if (!accepts(GradKind::kRowSparse)) return;
  constexpr int64_t kRows = 60, kTokens = 24, kSteps = 800;
  const Tensor truth = test::random_tensor({kRows, 3}, 1);
  const double best = best_of_learning_rates([&](double lr) {
    Parameter p(Tensor::zeros({kRows, 3}), GradKind::kRowSparse);
    const auto rule = make_frozen(lr, {{"weight_decay", 0.0}});
    for (int64_t s = 1; s <= kSteps; ++s) {
      std::vector<int32_t> ids;
      Tensor dy({kTokens, 3});
      for (int64_t t = 0; t < kTokens; ++t) {  // P(rank <= r) about log r / log V: Zipf's law with exponent 1
        const double u = random_uniform(test::test_key(9), static_cast<uint64_t>(s * kTokens + t));
        const auto id = static_cast<int32_t>(std::pow(static_cast<double>(kRows + 1), u)) - 1;
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

INSTANTIATE_TEST_SUITE_P(EveryRule, OptimizerContract, ::testing::ValuesIn(optimizer_rules()),
                         [](const auto& rule) { return rule.param; });

}  // namespace
}  // namespace rowan
