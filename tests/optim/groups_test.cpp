#include "optim/groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/support/compare.h"
#include "tests/support/optim.h"
#include "tests/support/random.h"

namespace rowan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A small model: an untied table, a matrix, a bias.
struct Model {
  Parameter tokens{test::random_tensor({11, 4}, 1), GradKind::kRowSparse};
  Parameter weight{test::random_tensor({3, 4}, 2)};
  Parameter bias{test::random_tensor({3}, 3)};

  std::vector<NamedParameter> list() {
    return {{"embed.tokens.weight", &tokens}, {"blocks.0.mlp.up.weight", &weight}, {"blocks.0.mlp.up.bias", &bias}};
  }
  void give_gradients(uint32_t step) {
    test::give_row_grad(tokens, {1, 7, 1}, test::random_tensor({3, 4}, 100 + step));
    test::give_dense_grad(weight, test::random_tensor({3, 4}, 200 + step));
    test::give_dense_grad(bias, test::random_tensor({3}, 300 + step));
  }
  std::vector<Tensor> values() { return {tokens.value(), weight.value(), bias.value()}; }
};

std::vector<Tensor> clones(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> out;
  for (const Tensor& t : tensors) out.push_back(t.clone());
  return out;
}

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& e) {
    return std::string(e.what()) + " | " + e.hint();
  }
  return "no error";
}

OptimizerSet usual_set(Model& m, double lr = 0.01) {
  return OptimizerSet({{"embed.tokens.*", test::make_rule("sparse_adam", {{"lr", lr}})}},
                      test::make_rule("adamw", {{"lr", lr}, {"weight_decay", 0.1}}), m.list());
}

TEST(OptimizerSet, first_match_wins_and_the_fallback_takes_the_rest) {
  Model m;
  OptimizerSet set({{"*.bias", test::make_rule("sgd")}, {"blocks.*", test::make_rule("sgd", {{"momentum", 0.5}})}},
                   test::make_rule("adamw"), m.list());
  const std::vector<GroupReport> reports = set.report();
  ASSERT_EQ(reports.size(), 3u);
  EXPECT_THAT(reports[0].parameters, ElementsAre("blocks.0.mlp.up.bias"));
  EXPECT_THAT(reports[1].parameters, ElementsAre("blocks.0.mlp.up.weight"));
  EXPECT_THAT(reports[2].parameters, ElementsAre("embed.tokens.weight"));
  EXPECT_EQ(set.optimizer_of("blocks.0.mlp.up.bias").rule(), "sgd");
}

TEST(OptimizerSet, report_counts_elements_state_bytes_and_kinds) {
  Model m;
  const std::vector<GroupReport> reports = usual_set(m).report();
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(reports[0].elements, 44);
  EXPECT_EQ(reports[0].state_bytes, static_cast<int64_t>(2 * 44 * sizeof(Real)));
  EXPECT_EQ(reports[0].row_sparse, 1);
  EXPECT_EQ(reports[1].tensors, 2);
  EXPECT_EQ(reports[1].elements, 15);
  EXPECT_EQ(reports[1].dense, 2);
  EXPECT_THAT(reports[0].settings, HasSubstr("untouched=frozen"));
  const std::string table = usual_set(m).report_text();
  EXPECT_THAT(table, HasSubstr("embed.tokens.*"));
  EXPECT_THAT(table, HasSubstr("row-sparse"));
}

TEST(OptimizerSet, a_glob_that_matches_nothing_is_an_error_with_a_near_name) {
  Model m;
  const std::string text = message_of([&] {
    OptimizerSet({{"embed.token.weight", test::make_rule("sgd")}}, test::make_rule("adamw"), m.list());
  });
  EXPECT_THAT(text, HasSubstr("'embed.token.weight' matches no parameter"));
  EXPECT_THAT(text, HasSubstr("did you mean 'embed.tokens.weight'?"));
}

TEST(OptimizerSet, a_group_whose_parameters_an_earlier_one_took_is_an_error_that_says_so) {
  Model m;
  const std::string text = message_of([&] {
    OptimizerSet({{"embed.*", test::make_rule("sgd")}, {"*.tokens.*", test::make_rule("sgd")}}, test::make_rule("adamw"), m.list());
  });
  EXPECT_THAT(text, HasSubstr("'*.tokens.*' takes no parameter"));
  EXPECT_THAT(text, HasSubstr("earlier group 'embed.*'"));
}

TEST(OptimizerSet, a_sparse_rule_refuses_a_dense_table_and_says_why) {
  Model m;
  m.tokens = Parameter(test::random_tensor({11, 4}, 1), GradKind::kDense);  // as when tied to the head
  const std::string text = message_of([&] { usual_set(m); });
  EXPECT_THAT(text, HasSubstr("embed.tokens.weight"));
  EXPECT_THAT(text, HasSubstr("softmax gives every row a gradient"));
}

TEST(OptimizerSet, consumes_and_clears_gradients_and_leaves_parameters_without_one) {
  Model m;
  OptimizerSet set = usual_set(m);
  m.give_gradients(1);
  m.bias.var.clear_grad();
  const Tensor bias = m.bias.value().clone(), weight = m.weight.value().clone();
  EXPECT_TRUE(set.clip_and_step(1.0, {}).finite);
  EXPECT_FALSE(m.tokens.has_grad());
  EXPECT_FALSE(m.weight.has_grad());
  EXPECT_TRUE(test::same_bits(m.bias.value(), bias));
  EXPECT_FALSE(test::same_bits(m.weight.value(), weight));
}

TEST(OptimizerSet, clipping_is_the_same_as_scaling_the_gradients) {
  Model clipped, scaled;
  OptimizerSet a = usual_set(clipped), b = usual_set(scaled);
  for (uint32_t s = 1; s <= 5; ++s) {
    clipped.give_gradients(s);
    scaled.give_gradients(s);
    const double factor = global_grad_norm(scaled.list()).scale(0.5);
    scaled.tokens.row_grad().coalesce();
    for (Tensor* g : {&scaled.weight.grad(), &scaled.bias.grad(), &scaled.tokens.row_grad().values()})
      for (Real& x : g->values()) x *= static_cast<Real>(factor);
    EXPECT_LT(factor, 1);
    a.clip_and_step(0.5, {.step = s});
    b.step({.step = s});
  }
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(test::same_bits(clipped.values()[i], scaled.values()[i]));
}

TEST(OptimizerSet, a_non_finite_gradient_changes_no_weight_no_state_and_no_counter) {
  Model m;
  OptimizerSet set = usual_set(m);
  m.give_gradients(1);
  set.clip_and_step(1.0, {.step = 1});
  const std::vector<Tensor> before = clones(m.values());
  test::MemoryState state_before, state_after;
  set.visit_state(state_before);
  m.give_gradients(2);
  m.bias.grad().data()[2] = std::numeric_limits<Real>::quiet_NaN();
  const GradNorm norm = set.clip_and_step(1.0, {.step = 2});
  EXPECT_FALSE(norm.finite);
  EXPECT_EQ(norm.non_finite, "blocks.0.mlp.up.bias");
  set.visit_state(state_after);
  for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(test::same_bits(m.values()[i], before[i]));
  for (const auto& [name, value] : state_before.values()) {
    if (const Tensor* t = std::get_if<Tensor>(&value)) {
      EXPECT_TRUE(test::same_bits(std::get<Tensor>(state_after.values().at(name)), *t)) << name;
    } else if (const int64_t* n = std::get_if<int64_t>(&value)) {
      EXPECT_EQ(std::get<int64_t>(state_after.values().at(name)), *n) << name;
    }
  }
}

TEST(OptimizerSet, state_is_complete_before_the_first_step_and_named_after_parameters) {
  Model m;
  OptimizerSet set = usual_set(m);
  test::MemoryState state;
  set.visit_state(state);
  for (const char* name : {"embed.tokens.weight/exp_avg", "embed.tokens.weight/exp_avg_sq", "embed.tokens.weight/step",
                           "blocks.0.mlp.up.bias/exp_avg", "blocks.0.mlp.up.bias/step", "group-0/settings", "group-1/settings"})
    EXPECT_TRUE(state.values().contains(name)) << name;
}

TEST(OptimizerSet, continues_bitwise_after_loading_into_one_built_with_other_hyperparameters) {
  Model whole, first, second;
  OptimizerSet a = usual_set(whole), b = usual_set(first), c = usual_set(second, 0.5);
  const auto train = [](Model& m, OptimizerSet& set, uint32_t from, uint32_t to) {
    for (uint32_t s = from; s <= to; ++s) {
      m.give_gradients(s);
      set.clip_and_step(1.0, {.step = s, .lr_factor = 1.0 / s});
    }
  };
  train(whole, a, 1, 9);
  train(first, b, 1, 4);
  test::MemoryState state;
  b.visit_state(state);
  state.load();
  c.visit_state(state);
  for (auto [to, from] : {std::pair{&second.tokens, &first.tokens}, {&second.weight, &first.weight}, {&second.bias, &first.bias}})
    to->value() = from->value().clone();
  train(second, c, 5, 9);
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(test::same_bits(whole.values()[i], second.values()[i]));
}

TEST(OptimizerSet, loading_state_of_another_shape_is_an_error_that_names_it) {
  Model m, other;
  OptimizerSet set = usual_set(m), wrong = usual_set(other);
  test::MemoryState state;
  set.visit_state(state);
  state.values()["blocks.0.mlp.up.bias/exp_avg"] = Tensor::zeros({4});
  state.load();
  EXPECT_THAT(message_of([&] { wrong.visit_state(state); }),
              HasSubstr("blocks.0.mlp.up.bias/exp_avg' has shape (4); expected (3)"));
}

TEST(OptimizerSet, same_bits_for_any_thread_count) {
  EXPECT_TRUE(test::same_bits_for_any_thread_count([] {
    Parameter table(test::random_tensor({5000, 33}, 1), GradKind::kRowSparse), matrix(test::random_tensor({700, 123}, 2));
    OptimizerSet set({{"table", test::make_rule("sparse_adam")}}, test::make_rule("adamw"),
                     {{"table", &table}, {"matrix", &matrix}});
    for (uint32_t s = 1; s <= 3; ++s) {
      const Ids ids = test::random_ids({2000}, 5000, s);
      test::give_row_grad(table, {ids.values().begin(), ids.values().end()}, test::random_tensor({2000, 33}, s));
      test::give_dense_grad(matrix, test::random_tensor({700, 123}, s));
      set.clip_and_step(0.1, {.step = s});
    }
    return std::vector<Tensor>{table.value(), matrix.value()};
  }));
}

TEST(Registry, an_unknown_rule_is_an_error_with_the_known_and_the_nearest) {
  const std::string text = message_of([] { make_optimizer("adanw"); });
  EXPECT_THAT(text, HasSubstr("no rule is called 'adanw'"));
  EXPECT_THAT(text, HasSubstr("sparse_adam"));
  EXPECT_THAT(text, HasSubstr("did you mean 'adamw'?"));
}

}  // namespace
}  // namespace rowan
