// The axes of row-sparse optimizers, each against a plain loop, and the combinations that make no sense.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "optim/groups.h"
#include "optim/row_optimizer.h"
#include "optim/settings.h"
#include "tests/support/compare.h"
#include "tests/support/optim.h"
#include "tests/support/random.h"

namespace rowan {
namespace {

constexpr double kTolerance = kRealIsDouble ? 1e-13 : 1e-6;
using Text = std::string;

// One sgd step with lr 1 from `init`: init - result is the gradient as the rule saw it.
std::vector<double> seen_gradient(const Tensor& init, const std::vector<int32_t>& ids, const Tensor& dy, test::FieldValues fields,
                                  double scale = 1) {
  fields["lr"] = 1.0;
  fields["untouched"] = Text("frozen");
  Parameter p(init.clone(), GradKind::kRowSparse);
  test::give_row_grad(p, ids, dy);
  test::make_rule("sgd", fields)->step("p", p, {.step = 1, .grad_scale = scale});
  std::vector<double> g;
  for (int64_t i = 0; i < init.size(); ++i)
    g.push_back(static_cast<double>(init.data()[i]) - static_cast<double>(p.value().data()[i]));
  return g;
}

const std::vector<int32_t> kIds = {2, 0, 2, 2};
Tensor some_dy() {
  return Tensor::from({4, 2}, std::vector<Real>{3, 4, Real(0.3), Real(-0.4), 6, 8, -3, 0});
}  // row 2 sums to (6, 12)

TEST(RowAxes, duplicates_are_summed_or_averaged) {
  const Tensor zero = Tensor::zeros({3, 2});
  test::expect_close(seen_gradient(zero, kIds, some_dy(), {}), std::vector<double>{0.3, -0.4, 0, 0, 6, 12}, kTolerance);
  test::expect_close(seen_gradient(zero, kIds, some_dy(), {{"duplicates", Text("mean")}}, 0.5),
                     std::vector<double>{0.15, -0.2, 0, 0, 1, 2}, kTolerance);
}

TEST(RowAxes, sequential_duplicates_are_one_update_after_the_other) {
  Parameter p(Tensor::full({3, 1}, 1), GradKind::kRowSparse);
  const auto rule =
      test::make_rule("adagrad", {{"lr", 0.5}, {"untouched", Text("frozen")}, {"duplicates", Text("sequential")}, {"eps", 0.0}});
  rule->prepare("p", p);
  double w = 1, h = 0;
  for (int step = 1; step <= 2; ++step) {
    test::give_row_grad(p, {1, 1, 1}, Tensor::from({3, 1}, std::vector<Real>{3, -4, 12}));
    p.row_grad().coalesce();  // as taking the global norm does
    rule->step("p", p, {.step = step, .grad_scale = 0.5});
    for (double g : {1.5, -2.0, 6.0}) {
      h += g * g;
      w -= 0.5 * g / std::sqrt(h);
    }
  }
  test::expect_close(p.value(), std::vector<double>{1, w, 1}, kTolerance);
}

TEST(RowAxes, weights_decay_once_when_duplicates_are_sequential) {
  for (const auto& [rule, decay] : {std::pair{"sgd", "coupled"}, {"sgd", "touched"}, {"adagrad", "coupled"}, {"lamb", "touched"}}) {
    const auto after = [&](const std::vector<int32_t>& ids) {
      Parameter p(Tensor::full({3, 1}, 1), GradKind::kRowSparse);
      const auto r = test::make_rule(rule, {{"lr", 0.1},
                                            {"weight_decay", 0.1},
                                            {"decay", Text(decay)},
                                            {"untouched", Text("frozen")},
                                            {"duplicates", Text("sequential")}});
      r->prepare("p", p);
      test::give_row_grad(p, ids, Tensor::zeros({std::ssize(ids), 1}));
      r->step("p", p, {.step = 1});
      return static_cast<double>(p.value().data()[1]);
    };
    EXPECT_LT(after({1}), 0.995) << rule;
    EXPECT_NEAR(after({1, 1, 1}), after({1}), kTolerance) << rule << " " << decay;
  }
}

TEST(RowAxes, cowclip_counts_the_batch_for_sequential_duplicates_too) {
  const auto moved = [](const std::vector<int32_t>& ids) {
    Parameter p(Tensor::full({2, 1}, 1), GradKind::kRowSparse);
    const auto r = test::make_rule("sgd", {{"lr", 1.0},
                                           {"untouched", Text("frozen")},
                                           {"duplicates", Text("sequential")},
                                           {"clip", Text("cowclip")},
                                           {"clip_bound", 0.01}});
    r->prepare("p", p);
    const auto n = std::ssize(ids);
    Tensor g = Tensor::zeros({n, 1});
    g.data()[0] = 1;  // of the first occurrence alone
    test::give_row_grad(p, ids, g);
    r->step("p", p, {.step = 1});
    return 1 - static_cast<double>(p.value().data()[0]);
  };
  EXPECT_NEAR(moved({0}), 0.01, 1e-6);
  EXPECT_NEAR(moved({0, 0, 0}), 0.03, 1e-6);
}

// Where every id occurs once there is nothing to sum, and nothing to do one after the other.
TEST(RowAxes, sequential_is_sum_where_no_id_is_repeated_whatever_clips_and_decays) {
  for (const char* clip : {"none", "value", "row_norm", "cowclip"})
    for (const char* decay : {"coupled", "touched"}) {
      const auto after = [&](const char* duplicates) {
        Parameter p(test::random_tensor({5, 3}, 4), GradKind::kRowSparse);
        const auto r = test::make_rule("sgd", {{"lr", 0.5},
                                               {"weight_decay", 0.5},
                                               {"decay", Text(decay)},
                                               {"untouched", Text("frozen")},
                                               {"duplicates", Text(duplicates)},
                                               {"clip", Text(clip)},
                                               {"clip_bound", 0.1}});
        r->prepare("p", p);
        test::give_row_grad(p, {3, 1, 4}, test::random_tensor({3, 3}, 5));
        r->step("p", p, {.step = 1});
        return p.value();
      };
      EXPECT_TRUE(test::same_bits(after("sequential"), after("sum"))) << clip << " " << decay;
    }
}

// Its square is 0, and without eps so is what it is divided by.
TEST(RowAxes, a_gradient_whose_square_underflows_leaves_weights_finite_when_eps_is_0) {
  for (const char* rule : {"adagrad", "rmsprop", "sm3", "rowwise_adagrad", "adam", "adamw", "amsgrad", "nadam", "lamb"}) {
    Parameter p(Tensor::full({2, 3}, 1), GradKind::kRowSparse);
    const auto r = test::make_rule(rule, {{"eps", 0.0}, {"weight_decay", 0.0}});
    r->prepare("p", p);
    test::give_row_grad(p, {1}, Tensor::full({1, 3}, static_cast<Real>(kRealIsDouble ? 1e-200 : 1e-30)));
    r->step("p", p, {.step = 1});
    for (const Real w : p.value().values()) EXPECT_TRUE(std::isfinite(w)) << rule;
  }
}

TEST(RowAxes, sequential_duplicates_stay_so_when_they_come_from_a_checkpoint) {
  const auto set_of = [](Parameter& p, const char* duplicates) {
    return std::make_unique<OptimizerSet>(
        std::vector<ParameterGroup>{},
        std::shared_ptr<Optimizer>(test::make_rule("adagrad", {{"untouched", Text("frozen")}, {"duplicates", Text(duplicates)}})),
        std::vector<NamedParameter>{{"p", &p}});
  };
  Parameter from(Tensor::full({3, 1}, 1), GradKind::kRowSparse), to(Tensor::full({3, 1}, 1), GradKind::kRowSparse);
  const auto saved = set_of(from, "sequential"), loaded = set_of(to, "sum");
  test::MemoryState state;
  saved->visit_state(state);
  state.load();
  loaded->visit_state(state);
  for (Parameter* p : {&from, &to}) test::give_row_grad(*p, {1, 1, 1, 1}, Tensor::from({4, 1}, std::vector<Real>{3, -4, 12, 5}));
  saved->clip_and_step(1, {.step = 1});
  loaded->clip_and_step(1, {.step = 1});
  EXPECT_TRUE(test::same_bits(from.value(), to.value()));
  EXPECT_NE(to.value().data()[1], 1);
}

// Without a gradient, nothing moves an element, and eps is not needed for it.
TEST(RowAxes, rows_that_were_never_read_stay_when_eps_is_0) {
  for (const char* rule : {"adam", "adamw", "amsgrad", "nadam", "lamb", "adam8bit", "partial_rowwise_adam"})
    for (const char* untouched : {"dense", "frozen", "exact", "closed"}) {
      const bool closed = untouched == std::string("closed");
      if (closed && rule != std::string("adam") && rule != std::string("adamw")) continue;
      test::FieldValues fields = {
          {"eps", 0.0}, {"weight_decay", 0.0}, {"lr", 0.1}, {"untouched", Text(closed ? "exact" : untouched)}};
      if (closed) fields["catch_up"] = Text("closed");
      Parameter p(Tensor::full({4, 2}, 1), GradKind::kRowSparse);
      const auto r = test::make_rule(rule, fields);
      for (int s = 1; s <= 3; ++s) {
        test::give_row_grad(p, {1}, Tensor::full({1, 2}, 1));
        r->step("p", p, {.step = s});
      }
      r->flush("p", p);
      for (const int64_t row : {0, 2, 3})
        for (const Real w : p.value().row(row)) ASSERT_EQ(w, 1) << rule << " " << untouched;
      for (const Real w : p.value().row(1)) ASSERT_LT(w, 1) << rule << " " << untouched;
    }
}

TEST(RowAxes, clip_bounds_elements_rows_or_rows_by_their_weight_and_count) {
  const Tensor zero = Tensor::zeros({3, 2});
  test::expect_close(seen_gradient(zero, kIds, some_dy(), {{"clip", Text("value")}, {"clip_bound", 7.0}}),
                     std::vector<double>{0.3, -0.4, 0, 0, 6, 7}, kTolerance);
  const double norm = std::hypot(6, 12);
  test::expect_close(seen_gradient(zero, kIds, some_dy(), {{"clip", Text("row_norm")}, {"clip_bound", 1.0}}),
                     std::vector<double>{0.3, -0.4, 0, 0, 6 / norm, 12 / norm}, kTolerance);
  const Tensor init =
      Tensor::from({3, 2}, std::vector<Real>{0, 0, 1, 1, 3, 4});  // |w| of row 2 is 5, read 3 times; row 0 is at the floor
  test::expect_close(seen_gradient(init, kIds, some_dy(), {{"clip", Text("cowclip")}, {"clip_bound", 0.1}, {"clip_floor", 0.01}}),
                     std::vector<double>{0.0006, -0.0008, 0, 0, 6 * 1.5 / norm, 12 * 1.5 / norm}, kTolerance);
}

TEST(RowAxes, decay_is_none_coupled_or_on_touched_rows) {
  const Tensor init = Tensor::full({3, 2}, 2);
  const std::vector<double> plain = {0.3, -0.4, 0, 0, 6, 12};
  std::vector<double> decayed = plain;
  for (size_t i : {0, 1, 4, 5}) decayed[i] += 0.25 * 2;
  for (const char* way : {"coupled", "touched"})  // the same for plain sgd: w (1 - lr wd) - lr g
    test::expect_close(seen_gradient(init, kIds, some_dy(), {{"weight_decay", 0.25}, {"decay", Text(way)}}), decayed, kTolerance,
                       way);
}

TEST(RowAxes, deferred_decay_makes_up_what_a_row_missed_before_it_is_read) {
  Parameter p(Tensor::full({2, 1}, 1), GradKind::kRowSparse);
  const auto rule =
      test::make_rule("adagrad", {{"lr", 0.1}, {"weight_decay", 0.5}, {"decay", Text("deferred")}, {"untouched", Text("frozen")}});
  double expected = 1;
  for (int s = 1; s <= 50; ++s) {
    test::give_row_grad(p, {1}, Tensor::full({1, 1}, 1));
    rule->step("p", p, {.step = s, .lr_factor = 1.0 / s});
    expected *= 1 - 0.1 / s * 0.5;
  }
  EXPECT_EQ(p.value().data()[0], 1) << "untouched until it is read";
  rule->catch_up("p", p, std::vector<int32_t>{0, 0});
  EXPECT_NEAR(p.value().data()[0], expected, 10 * kTolerance);
  rule->catch_up("p", p, std::vector<int32_t>{0});
  EXPECT_NEAR(p.value().data()[0], expected, 10 * kTolerance) << "nothing is made up twice";
}

TEST(RowAxes, row_counters_correct_bias_by_the_rows_own_updates) {
  Parameter p(Tensor::zeros({2, 1}), GradKind::kRowSparse);
  const auto rule = test::make_rule(
      "adamw", {{"lr", 0.01}, {"untouched", Text("frozen")}, {"counter", Text("row")}, {"eps", 0.0}, {"weight_decay", 0.0}});
  for (int s = 1; s <= 30; ++s) {
    test::give_row_grad(p, s == 30 ? std::vector<int32_t>{0, 1} : std::vector<int32_t>{1},
                        Tensor::full({s == 30 ? 2 : 1, 1}, Real(0.3)));
    rule->step("p", p, {.step = s});
  }
  EXPECT_NEAR(p.value().data()[0], -0.01, 1e-8);  // the first step of a row moves it by lr, whenever it comes
}

TEST(RowAxes, the_first_step_of_bias_corrected_rules_is_lr_times_the_sign_for_any_betas) {
  for (const char* rule : {"adam", "adamw", "amsgrad", "adam8bit", "fbgemm_adam", "dgl_sparse_adam", "mxnet_lazy_adam",
                           "pytorch_sparse_adam", "sparse_adam", "tf_lazy_adam"})
    for (const auto& [beta1, beta2] : {std::pair{0.9, 0.999}, {0.0, 0.9}, {0.5, 0.5}, {0.99, 0.9}}) {
      Parameter p(Tensor::zeros({3, 2}), GradKind::kRowSparse);
      const auto r =
          test::make_rule(rule, {{"lr", 0.125}, {"beta1", beta1}, {"beta2", beta2}, {"eps", 1e-30}, {"weight_decay", 0.0}});
      test::give_row_grad(p, {1}, Tensor::from({1, 2}, std::vector<Real>{Real(0.37), -5}));
      r->step("p", p, {.step = 1});
      test::expect_close(p.value(), std::vector<double>{0, 0, -0.125, 0.125, 0, 0},
                         rule == std::string("adam8bit") ? 1e-5 : 10 * kTolerance, rule);
    }
}

// A mean without memory is the gradient, however much larger the one before was.
TEST(RowAxes, with_betas_of_0_every_step_is_lr_times_the_sign) {
  for (const char* rule : {"adam", "adamw", "nadam", "adam8bit", "partial_rowwise_adam", "fbgemm_adam", "dgl_sparse_adam",
                           "mxnet_lazy_adam", "pytorch_sparse_adam", "sparse_adam", "tf_lazy_adam", "smart_decay_adam"}) {
    Parameter p(Tensor::zeros({3, 2}), GradKind::kRowSparse);
    const auto r = test::make_rule(rule, {{"lr", 0.125}, {"beta1", 0.0}, {"beta2", 0.0}, {"eps", 1e-30}, {"weight_decay", 0.0}});
    const double large = kRealIsDouble ? 1e14 : 1e6, small = 1e-3;
    for (const double size : {large, -small}) {
      test::give_row_grad(p, {1}, Tensor::from({1, 2}, std::vector<Real>{static_cast<Real>(size), static_cast<Real>(-size)}));
      r->step("p", p, {.step = size > 0 ? 1 : 2});
    }
    test::expect_close(p.value(), std::vector<double>(6, 0.0), rule == std::string("adam8bit") ? 1e-5 : 10 * kTolerance, rule);
  }
}

TEST(RowAxes, a_report_says_what_a_step_touched_and_moved) {
  Parameter p(Tensor::zeros({10, 4}), GradKind::kRowSparse);
  const auto rule = test::make_rule("adamw", {{"untouched", Text("frozen")}});
  test::give_row_grad(p, {3, 3, 7, 3}, Tensor::full({4, 4}, 1));
  rule->step("p", p, {.step = 1});
  const UpdateReport r = dynamic_cast<RowOptimizer&>(*rule).last_update("p");
  EXPECT_EQ(r.rows, 10);
  EXPECT_EQ(r.touched, 2);
  EXPECT_EQ(r.updated, 2);
  EXPECT_EQ(r.longest_run, 3);
  // 24 D bytes a row in float, and 4 D an occurrence: they are summed as they are read.
  EXPECT_EQ(r.bytes, static_cast<int64_t>((2 * 6 + 4) * 4 * sizeof(Real)));
  EXPECT_GT(r.seconds, 0);
}

TEST(RowAxes, a_report_counts_what_catching_up_moved) {
  Parameter p(Tensor::full({100, 4}, 1), GradKind::kRowSparse);
  const auto rule = test::make_rule("adamw", {{"untouched", Text("exact")}});
  const auto step = [&](const std::vector<int32_t>& ids, int64_t s) {
    rule->catch_up("p", p, ids);
    test::give_row_grad(p, ids, Tensor::full({std::ssize(ids), 4}, 1));
    rule->step("p", p, {.step = s});
    return dynamic_cast<RowOptimizer&>(*rule).last_update("p");
  };
  step({3}, 1);
  step({3}, 2);
  const UpdateReport r = step({3, 7, 8}, 3);  // of which rows 7 and 8 have missed two steps
  EXPECT_EQ(r.caught_up, 4);
  const auto row = static_cast<int64_t>(4 * sizeof(Real));
  EXPECT_EQ(r.bytes, 3 * (6 + 1) * row + 2 * (6 * row + 8));
}

TEST(RowAxes, combinations_that_make_no_sense_are_errors_that_say_why) {
  const std::vector<std::pair<test::FieldValues, Text>> wrong = {
      {{{"weight_decay", 0.1}, {"decay", Text("none")}}, "would never apply it"},
      {{{"counter", Text("row")}}, "own count is the global one"},
      {{{"counter", Text("row")}, {"untouched", Text("exact")}}, "own count is the global one"},
      {{{"decay", Text("deferred")}}, "no row misses a decay"},
      {{{"catch_up", Text("closed")}}, "only exact rows catch up"},
      {{{"catch_up", Text("closed")}, {"untouched", Text("exact")}, {"decay", Text("coupled")}}, "no closed form"},
      {{{"duplicates", Text("sequential")}}, "one gradient a row"},
  };
  for (const auto& [fields, reason] : wrong) {
    try {
      test::make_rule("adamw", fields);
      ADD_FAILURE() << "accepted where \"" << reason << "\" was expected";
    } catch (const Error& e) {
      EXPECT_THAT(e.what(), ::testing::HasSubstr(reason));
    }
  }
}

TEST(RowAxes, saved_settings_that_are_refused_change_nothing) {
  const auto rule = test::make_rule("adamw", {{"lr", 0.5}});
  const Text before = write_settings(settings_of(*rule));
  const auto with = [&](const Text& field, const Text& value) {
    Text text = before;
    const size_t at = text.find("\n" + field + "=") + 1, end = text.find('\n', at);
    return text.replace(at, end - at, field + "=" + value);
  };
  for (const Text& wrong :
       {with("beta1", "2"), with("beta2", "nan"), with("decay", "none"), with("eps_mode", "hut"), before + "x=1\n"}) {
    EXPECT_THROW(read_settings(*rule, wrong), Error) << wrong;
    EXPECT_EQ(write_settings(settings_of(*rule)), before);
  }
  read_settings(*rule, with("beta1", "0.25"));
  EXPECT_EQ(write_settings(settings_of(*rule)), with("beta1", "0.25"));
}

// What a rule by its own formula makes pointless.
TEST(RowAxes, combinations_that_make_no_sense_for_a_rule_are_errors_that_say_why) {
  const std::vector<std::tuple<Text, test::FieldValues, Text>> wrong = {
      {"ftrl", {{"weight_decay", 0.1}, {"decay", Text("touched")}}, "undoes what decayed it"},
      {"ftrl", {{"weight_decay", 0.1}, {"decay", Text("deferred")}, {"untouched", Text("frozen")}}, "undoes what decayed it"},
      {"lamb", {{"weight_decay", 0.1}, {"decay", Text("coupled")}}, "inside its formula"},
      {"lars", {{"weight_decay", 0.1}, {"decay", Text("coupled")}}, "inside its formula"},
  };
  for (const auto& [rule, fields, reason] : wrong) {
    try {
      test::make_rule(rule, fields);
      ADD_FAILURE() << rule << " accepted where \"" << reason << "\" was expected";
    } catch (const Error& e) {
      EXPECT_THAT(e.what(), ::testing::HasSubstr(reason));
    }
  }
  test::make_rule("ftrl", {{"weight_decay", 0.1}, {"decay", Text("coupled")}});
  test::make_rule("adamw", {{"eps", 0.0}, {"untouched", Text("frozen")}});
}

TEST(RowAxes, rows_outside_the_table_are_refused_before_the_first_step_too) {
  Parameter p(Tensor::zeros({5, 2}), GradKind::kRowSparse);
  const auto rule = test::make_rule("adamw", {{"untouched", Text("exact")}});
  rule->prepare("p", p);
  EXPECT_THROW(rule->catch_up("p", p, std::vector<int32_t>{99}), Error);
}

TEST(RowAxes, cowclip_refuses_a_dense_parameter) {
  Parameter p(Tensor::zeros({3, 2}));
  EXPECT_THROW(test::make_rule("sgd", {{"clip", Text("cowclip")}})->prepare("p", p), Error);
}

}  // namespace
}  // namespace rowan
