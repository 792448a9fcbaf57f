// What every registered rule promises, whoever wrote it. Rules are taken from the registry: there is no list to keep here, but for
// one test that names the rules the library must have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <limits>

#include "optim/groups.h"
#include "tests/support/contract.h"

namespace rowan {
namespace {

using test::cosine;
using test::give;
using test::plain;
using test::rows_of;
using test::state_tensors;

class OptimizerContract : public test::OptimizerContract {};

TEST(Rules, the_library_has_the_expected_ones) {
  const std::vector<std::string> rules = optimizer_rules();
  for (const char* expected : {"adafactor",
                               "adagrad",
                               "adam",
                               "adam8bit",
                               "adamw",
                               "amsgrad",
                               "dgl_sparse_adam",
                               "fbgemm_adam",
                               "fbgemm_rowwise_adagrad",
                               "ftrl",
                               "lamb",
                               "lars",
                               "lion",
                               "momentum",
                               "muon",
                               "mxnet_lazy_adam",
                               "nadam",
                               "nesterov",
                               "partial_rowwise_adam",
                               "pytorch_sparse_adam",
                               "rmsprop",
                               "rowwise_adagrad",
                               "sgd",
                               "sm3",
                               "smart_decay_adam",
                               "sparse_adam",
                               "tf_lazy_adam"})
    EXPECT_THAT(rules, ::testing::Contains(expected));
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

// More rows than one thread takes: sums over a column are added up in the same order.
TEST_P(OptimizerContract, dense_and_row_sparse_agree_bitwise_in_tables_of_many_rows) {
  if (!accepts(GradKind::kDense) || !accepts(GradKind::kRowSparse)) return;
  const auto dense_rule = make(), sparse_rule = make();
  const Tensor init = test::random_tensor({1024, 16}, 1);
  Parameter dense(init.clone()), sparse(init.clone(), GradKind::kRowSparse);
  for (uint32_t s = 1; s <= 3; ++s) {
    // Squares that one order of additions rounds and another does not.
    Tensor g = Tensor::full({1024, 16}, std::ldexp(Real{1}, -15));
    std::fill_n(g.data(), 16, static_cast<Real>(4127 + 2 * s));
    give(dense, g);
    give(sparse, g);
    dense_rule->step("p", dense, {.step = s});
    sparse_rule->step("p", sparse, {.step = s});
    ASSERT_TRUE(test::same_bits(dense.value(), sparse.value())) << "step " << s;
    const std::vector<Tensor> of_dense = state_tensors(*dense_rule), of_sparse = state_tensors(*sparse_rule);
    for (size_t i = 0; i < of_dense.size(); ++i) ASSERT_TRUE(test::same_bits(of_dense[i], of_sparse[i])) << "step " << s;
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
  const bool rows = dynamic_cast<RowOptimizer*>(make().get()) != nullptr;  // a preset may average by default
  const test::FieldValues sum = rows ? test::FieldValues{{"duplicates", std::string("sum")}} : test::FieldValues{};
  const auto once = make_frozen(0.01, sum), thrice = make_frozen(0.01, sum);
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
  for (const Real broken :
       {std::numeric_limits<Real>::infinity(), -std::numeric_limits<Real>::infinity(), std::numeric_limits<Real>::quiet_NaN()}) {
    Tensor bad = test::random_tensor({5, 6}, 3);
    bad.data()[13] = broken;
    give(p, bad);
    EXPECT_FALSE(set.clip_and_step(1, {.step = 2}).finite);
    p.var.clear_grad();
  }
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
          auto other =
              std::make_unique<OptimizerSet>(std::vector<ParameterGroup>{}, make_other(), std::vector<NamedParameter>{{"p", &p}});
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
    if (row_rule == nullptr || row_rule->column_reduce() != ColumnReduce::kNone) continue;  // columns are shared with other rows
    EXPECT_TRUE(test::same_bits(Tensor::from({1, width}, table.value().row(2)), last.value())) << "width " << width;
    if (!row_rule->elementwise()) continue;
    EXPECT_TRUE(test::same_bits(table.value(), column.value().reshape({3, width}))) << "width " << width;
  }
}

// Sums made on the way to the update have the bits of sums made before it, long runs of one id included.
TEST_P(OptimizerContract, fused_and_unfused_updates_agree_bitwise) {
  if (!accepts(GradKind::kRowSparse)) return;
  Parameter a(test::random_tensor({50, 70}, 1), GradKind::kRowSparse), b(a.value().clone(), GradKind::kRowSparse);
  const auto fused = make_frozen(), unfused = make_frozen();
  for (uint32_t s = 1; s <= 3; ++s) {
    std::vector<int32_t> ids = plain(test::random_ids({400}, 50, s));
    std::fill(ids.begin() + 50, ids.end() - 20, 7);
    const Tensor dy = test::random_tensor({400, 70}, 10 + s);
    test::give_row_grad(a, ids, dy);
    test::give_row_grad(b, ids, dy);
    b.row_grad().coalesce();
    fused->step("p", a, {.step = s, .grad_scale = s % 2 ? 1.0 : 0.7});
    unfused->step("p", b, {.step = s, .grad_scale = s % 2 ? 1.0 : 0.7});
    ASSERT_TRUE(test::same_bits(a.value(), b.value())) << "step " << s;
  }
}

// Where a rule takes untouched = exact, rows that are read have the bits of the dense run at every step, whether the table is swept
// or its rows catch up, with a stop and a resume in the middle of gaps; and after a flush all rows have.
TEST_P(OptimizerContract, exact_rows_are_the_dense_run_bitwise) {
  if (dynamic_cast<RowOptimizer*>(make().get()) == nullptr || !accepts(GradKind::kRowSparse)) return;
  std::string refusal;
  int taken = 0;
  using Decay = std::pair<double, const char*>;
  for (const auto& [decay, kind] : {Decay{0.0, "none"}, {0.1, "touched"}, {1.0, "touched"}, {0.1, "coupled"}})
    for (const double sweep_above : {1.0, 0.1}) {
      const test::FieldValues common = {{"weight_decay", decay},
                                        {"decay", std::string(kind)},
                                        {"counter", std::string("global")},  // a preset may have others, which go with frozen rows
                                        {"duplicates", std::string("sum")}};
      test::FieldValues exact_fields = common, dense_fields = common;
      exact_fields["untouched"] = std::string("exact");
      exact_fields["sweep_above"] = sweep_above;
      dense_fields["untouched"] = std::string("dense");
      std::unique_ptr<Optimizer> dense;
      Parameter a(test::random_tensor({30, 9}, 1), GradKind::kRowSparse), b(a.value().clone(), GradKind::kRowSparse);
      std::unique_ptr<OptimizerSet> exact;
      try {
        exact = std::make_unique<OptimizerSet>(std::vector<ParameterGroup>{}, make(0.05, exact_fields),
                                               std::vector<NamedParameter>{{"p", &a}});
        dense = make(0.05, dense_fields);
      } catch (const Error& refused) {
        refusal = refused.what();  // exact_test.cpp names the rules that must take it
        continue;
      }
      ++taken;
      for (uint32_t s = 1; s <= 40; ++s) {
        const auto ids = plain(test::random_ids({4}, 30, s));
        exact->catch_up("p", ids);
        for (int32_t id : ids)
          ASSERT_EQ(std::memcmp(a.value().row(id).data(), b.value().row(id).data(), 9 * sizeof(Real)), 0)
              << "row " << id << ", step " << s;
        const Tensor dy = test::random_tensor({4, 9}, 100 + s);
        test::give_row_grad(a, ids, dy);
        test::give_row_grad(b, ids, dy);
        const StepInfo info{.step = s, .lr_factor = cosine(s, 50), .grad_scale = 0.9};
        exact->step(info);
        dense->step("p", b, info);
        if (s == 17) {
          test::MemoryState state;
          exact->visit_state(state);
          state.load();
          exact = std::make_unique<OptimizerSet>(std::vector<ParameterGroup>{}, make(0.9), std::vector<NamedParameter>{{"p", &a}});
          exact->visit_state(state);
        }
      }
      exact->flush();
      ASSERT_TRUE(test::same_bits(a.value(), b.value())) << "decay " << decay << ", sweep_above " << sweep_above;
    }
  if (taken == 0) GTEST_SKIP() << refusal;
}

// --- rules on whole matrices, which say so (Optimizer::whole_matrix), in place of what is claimed above for rows

TEST_P(OptimizerContract, a_rule_takes_row_sparse_tables_and_vectors_unless_it_is_for_whole_matrices) {
  const bool whole = make()->whole_matrix();
  EXPECT_EQ(accepts(GradKind::kRowSparse), !whole);
  EXPECT_EQ(dynamic_cast<RowOptimizer*>(make().get()) != nullptr, !whole);
  if (!accepts(GradKind::kDense)) return;
  Parameter vector(Tensor::zeros({7}));
  if (whole)
    EXPECT_THROW(make()->prepare("p", vector), Error);
  else
    EXPECT_NO_THROW(make()->prepare("p", vector));
}

// The update has no axes of its own: rows in another order, or rows as columns, give the same update in that order.
TEST_P(OptimizerContract, updates_of_whole_matrices_do_not_depend_on_the_order_of_rows_nor_on_orientation) {
  if (!make()->whole_matrix()) return;
  const Tensor init = test::random_tensor({6, 6}, 1);
  const auto place = [](int way, int64_t i, int64_t j) { return way == 0 ? i * 6 + j : way == 1 ? (5 - i) * 6 + j : j * 6 + i; };
  std::vector<Tensor> results;
  for (int way = 0; way < 3; ++way) {
    const auto arranged = [&](const Tensor& t) {
      Tensor out({6, 6});
      for (int64_t i = 0; i < 6; ++i)
        for (int64_t j = 0; j < 6; ++j) out.data()[place(way, i, j)] = t.data()[i * 6 + j];
      return out;
    };
    const auto rule = make(0.1);
    Parameter p(arranged(init));
    for (uint32_t s = 1; s <= 3; ++s) {
      give(p, arranged(test::random_tensor({6, 6}, 10 + s)));
      rule->step("p", p, {.step = s});
    }
    Tensor back({6, 6});
    for (int64_t i = 0; i < 6; ++i)
      for (int64_t j = 0; j < 6; ++j) back.data()[i * 6 + j] = p.value().data()[place(way, i, j)];
    results.push_back(back);
  }
  for (int way : {1, 2})
    test::expect_close(test::as_doubles(results[static_cast<size_t>(way)]), test::as_doubles(results[0]),
                       kRealIsDouble ? 1e-9 : 1e-3);
}

INSTANTIATE_TEST_SUITE_P(EveryRule, OptimizerContract, ::testing::ValuesIn(optimizer_rules()),
                         [](const auto& rule) { return rule.param; });

}  // namespace
}  // namespace rowan
