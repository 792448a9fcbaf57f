// untouched = exact: rows that lag behind and catch up. Bitwise equality with dense runs for every rule is in the contract test;
// here are long gaps, the closed form against arithmetic in long double, PyTorch's dense AdamW, and by how much frozen rows differ
// from all this.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "optim/groups.h"
#include "optim/row_optimizer.h"
#include "tests/support/compare.h"
#include "tests/support/optim.h"
#include "tests/support/random.h"
#include "tests/support/reference.h"

namespace rowan {
namespace {

constexpr double kHalfUlp = std::numeric_limits<Real>::epsilon() / 2;

TEST(ExactRows, the_rules_that_must_take_them_do) {
  for (const char* rule :
       {"adagrad", "adam", "adamw", "amsgrad", "ftrl", "lion", "momentum", "nesterov", "rmsprop", "rowwise_adagrad", "sgd"})
    EXPECT_NO_THROW(test::make_rule(rule, {{"untouched", std::string("exact")}})) << rule;
}

TEST(ExactRows, rules_that_cannot_say_why) {
  for (const auto& [rule, reason] :
       {std::pair{"sm3", "shared by all rows"}, {"adafactor", "shared by all rows"}, {"sparse_adam", "touched rows only"}}) {
    try {
      test::make_rule(rule, {{"untouched", std::string("exact")}});
      ADD_FAILURE() << rule << " took untouched = exact";
    } catch (const Error& e) {
      EXPECT_THAT(e.what(), ::testing::HasSubstr(reason));
    }
  }
  EXPECT_THROW(test::make_rule("amsgrad", {{"untouched", std::string("exact")}, {"catch_up", std::string("closed")}}), Error);
}

// A zero gradient changes nothing for these rules, so frozen rows are dense ones, bit for bit.
TEST(ExactRows, frozen_is_dense_for_rules_without_momentum) {
  for (const char* name : {"sgd", "adagrad", "rowwise_adagrad", "ftrl"}) {
    Parameter dense(test::random_tensor({30, 9}, 1)), frozen(dense.value().clone(), GradKind::kRowSparse);
    const auto a = test::make_rule(name), b = test::make_rule(name, {{"untouched", std::string("frozen")}});
    for (uint32_t s = 1; s <= 20; ++s) {
      const Ids ids = test::random_ids({4}, 30, s);
      const Tensor dy = test::random_tensor({4, 9}, 50 + s);
      frozen.row_grad().append(ids, dy);
      RowSparseGrad rows(30, 9);
      rows.append(ids, dy);
      rows.coalesce();
      dense.grad() = Tensor::zeros({30, 9});
      rows.add_to(dense.grad());
      a->step("p", dense, {.step = s, .lr_factor = 1.0 / s});
      b->step("p", frozen, {.step = s, .lr_factor = 1.0 / s});
    }
    EXPECT_TRUE(test::same_bits(dense.value(), frozen.value())) << name;
  }
}

// Row 0 is touched at `touch` alone, row 1 at every step: row 0 then has a gap as long as the run. Returns row 0 as read at the
// end.
struct GapRun {
  int64_t before = 5, gap = 100;
  double lr = 0.01;
  std::function<double(int64_t)> factor = [](int64_t) { return 1.0; };
  std::string eps_mode = "standard";
  double eps = 1e-8;

  std::vector<double> run(test::FieldValues fields, const std::string& rule = "adamw") const {
    fields["lr"] = lr;
    Threads threads(1);  // flush-to-zero on
    Parameter p(test::random_tensor({2, 5}, 1), GradKind::kRowSparse);
    const auto optimizer = test::make_rule(rule, fields);
    for (int64_t s = 1; s <= before + gap; ++s) {
      const bool both = s <= before;
      test::give_row_grad(p, both ? std::vector<int32_t>{0, 1} : std::vector<int32_t>{1},
                          test::random_tensor({both ? 2 : 1, 5}, static_cast<uint32_t>(both ? s : 1000)));
      optimizer->step("p", p, {.step = s, .lr_factor = factor(s)});
    }
    const std::vector<int32_t> read = {0};
    optimizer->catch_up("p", p, read);
    return test::as_doubles(Tensor::from({5}, p.value().row(0)));
  }
};

test::FieldValues with(test::FieldValues fields, const std::string& untouched, const std::string& catch_up = "replay") {
  fields["untouched"] = untouched;
  fields["catch_up"] = catch_up;
  return fields;
}

TEST(ExactRows, replay_over_a_gap_of_100000_steps_is_the_dense_run_bitwise) {
  GapRun run{.gap = 100000};
  run.factor = [](int64_t s) { return 1 / (1 + 1e-4 * static_cast<double>(s)); };
  const test::FieldValues fields = {{"weight_decay", 0.01}};
  EXPECT_EQ(run.run(with(fields, "exact")), run.run(with(fields, "dense")));
}

// The same steps in long double, with the settings as Real holds them.
std::vector<double> oracle(const GapRun& run, double beta1, double beta2, double decay) {
  using Wide = long double;
  const Wide eps = run.eps;
  const Wide take1 = static_cast<Real>(1 - beta1), keep2 = static_cast<Real>(beta2), take2 = static_cast<Real>(1 - beta2);
  const Tensor init = test::random_tensor({2, 5}, 1);
  std::vector<Wide> w(init.data(), init.data() + 5), m(5, 0), v(5, 0);
  Wide power1 = 1, power2 = 1;
  for (int64_t s = 1; s <= run.before + run.gap; ++s) {
    power1 *= static_cast<Wide>(beta1);
    power2 *= static_cast<Wide>(beta2);
    const Tensor g = s <= run.before ? test::random_tensor({2, 5}, static_cast<uint32_t>(s)) : Tensor::zeros({2, 5});
    const double lr = run.lr * run.factor(s);
    const Wide c1 = 1 - power1, c2 = 1 - power2;
    for (size_t j = 0; j < 5; ++j) {
      const Wide gj = g.data()[j];
      w[j] *= static_cast<Real>(1 - lr * decay);
      m[j] += take1 * (gj - m[j]);
      v[j] = keep2 * v[j] + take2 * gj * gj;
      Wide denominator = std::sqrt(v[j] / c2) + eps;
      if (run.eps_mode == "hat") denominator = (std::sqrt(v[j]) + eps) / std::sqrt(c2);
      if (run.eps_mode == "inside") denominator = std::sqrt(v[j] / c2 + eps);
      w[j] -= lr / c1 * m[j] / denominator;
    }
  }
  return {w.begin(), w.end()};
}

void expect_closed_within_its_bound(const GapRun& run, double beta1, double beta2, double decay) {
  const auto expected = oracle(run, beta1, beta2, decay);
  const test::FieldValues fields = {
      {"beta1", beta1}, {"beta2", beta2}, {"weight_decay", decay}, {"eps", run.eps}, {"eps_mode", run.eps_mode}};
  const auto closed = run.run(with(fields, "exact", "closed"));
  for (size_t j = 0; j < 5; ++j) {
    // The stated bound of the jump, and the roundings of the five steps before it, which are taken in Real.
    const double jump =
        kHalfUlp * (std::abs(expected[j]) + 2 * run.lr) + (kRealIsDouble ? static_cast<double>(run.gap) * kHalfUlp * 3 : 0);
    const double bound = jump + 5 * 6 * kHalfUlp * (3 + run.lr);
    EXPECT_NEAR(closed[j], expected[j], bound) << "gap " << run.gap << ", decay " << decay << ", betas " << beta1 << " " << beta2;
  }
}

TEST(ExactRows, closed_jump_keeps_its_error_bound_for_every_gap_schedule_and_decay) {
  const std::vector<std::function<double(int64_t)>> schedules = {
      [](int64_t) { return 1.0; }, [](int64_t s) { return 1.0 / static_cast<double>(s); },
      [](int64_t s) { return 0.5 * (1 + std::cos(0.01 * static_cast<double>(s))); }};
  for (const auto& factor : schedules)
    for (int64_t gap : {1, 2, 30, 200, 4000})
      for (double decay : {0.0, 0.1, 1.0})
        for (const auto& [beta1, beta2] : {std::pair{0.9, 0.999}, {0.9, 0.95}, {0.0, 0.99}}) {
          expect_closed_within_its_bound({.gap = gap, .factor = factor}, beta1, beta2, decay);
        }
  expect_closed_within_its_bound({.gap = 100000, .factor = schedules[2]}, 0.9, 0.999, 0.1);
}

TEST(ExactRows, closed_jump_keeps_its_error_bound_wherever_eps_stands) {
  for (const char* mode : {"standard", "hat", "inside"})
    for (int64_t gap : {2, 200, 4000})
      for (double decay : {0.0, 0.1})
        expect_closed_within_its_bound({.gap = gap, .eps_mode = mode, .eps = 1e-3}, 0.9, 0.999, decay);
}

// Readers come when they like: a flush, or a save and a load into another set, changes no bit of the training after it, also where
// rows catch up in jumps, of which two in a row are not one.
std::vector<Tensor> trained_with_readers(const test::FieldValues& fields, int64_t flush_every, int64_t reload_at) {
  Threads threads(2);
  Parameter p(test::random_tensor({20, 5}, 1), GradKind::kRowSparse);
  const auto make_set = [&](double lr) {
    test::FieldValues all = fields;
    all["lr"] = lr;
    return std::make_unique<OptimizerSet>(std::vector<ParameterGroup>{}, test::make_rule("adamw", all),
                                          std::vector<NamedParameter>{{"p", &p}});
  };
  auto set = make_set(0.01);
  test::MemoryState state;
  for (uint32_t s = 1; s <= 40; ++s) {
    const Ids ids = test::random_ids({2}, 20, s);
    set->catch_up("p", ids.values());
    p.row_grad().append(ids, test::random_tensor({2, 5}, 100 + s));
    set->step({.step = s, .lr_factor = 1.0 / s});
    if (flush_every > 0 && s % flush_every == 0) set->flush();
    if (s != reload_at) continue;
    set->visit_state(state);
    state.load();
    set = make_set(0.5);
    set->visit_state(state);
  }
  set->flush();
  set->flush();
  test::MemoryState end;
  set->visit_state(end);
  std::vector<Tensor> out = {p.value().clone()};
  for (const auto& [name, value] : end.values())
    if (const Tensor* t = std::get_if<Tensor>(&value)) out.push_back(*t);
  return out;
}

TEST(ExactRows, readers_in_between_change_no_bit_of_the_training) {
  const test::FieldValues deferred = {
      {"untouched", std::string("frozen")}, {"decay", std::string("deferred")}, {"weight_decay", 0.1}};
  for (const test::FieldValues& fields : {with({{"weight_decay", 0.1}}, "exact", "closed"), deferred}) {
    const std::vector<Tensor> alone = trained_with_readers(fields, 0, 0);
    for (const auto& [flush_every, reload_at] : {std::pair{1, 0}, {7, 0}, {0, 17}, {17, 17}, {3, 18}}) {
      const std::vector<Tensor> read = trained_with_readers(fields, flush_every, reload_at);
      ASSERT_EQ(read.size(), alone.size());
      for (size_t i = 0; i < alone.size(); ++i)
        EXPECT_TRUE(test::same_bits(alone[i], read[i])) << "flush every " << flush_every << ", reload at " << reload_at;
    }
  }
}

TEST(ExactRows, readers_see_rows_as_the_next_batch_would) {
  Parameter p(test::random_tensor({20, 5}, 1), GradKind::kRowSparse);
  const auto rule = test::make_rule("adamw", with({{"lr", 0.01}, {"weight_decay", 0.1}}, "exact", "closed"));
  for (uint32_t s = 1; s <= 30; ++s) {
    const Ids ids = test::random_ids({2}, 20, s);
    rule->catch_up("p", p, ids.values());
    p.row_grad().append(ids, test::random_tensor({2, 5}, 100 + s));
    rule->step("p", p, {.step = s});
  }
  const Tensor before = p.value().clone();
  rule->flush("p", p);
  const Tensor seen = p.value().clone();
  EXPECT_FALSE(test::same_bits(before, seen));
  std::vector<int32_t> all(20);
  std::iota(all.begin(), all.end(), 0);
  rule->catch_up("p", p, all);
  EXPECT_TRUE(test::same_bits(p.value(), seen));
}

TEST(ExactRows, closed_falls_back_to_replay_where_its_bound_does_not_hold) {
  const GapRun run{.gap = 300};
  const test::FieldValues no_tail = {{"beta1", 0.99}, {"beta2", 0.9}};  // beta1 > sqrt(beta2): the tail grows
  EXPECT_EQ(run.run(with(no_tail, "exact", "closed")), run.run(with(no_tail, "exact", "replay")));
  GapRun wild{.gap = 50, .lr = 1.5};  // lr * decay > 1: a factor below 0 has no logarithm
  EXPECT_EQ(wild.run(with({{"weight_decay", 1.0}}, "exact", "closed")), wild.run(with({{"weight_decay", 1.0}}, "exact", "replay")));
}

TEST(ExactRows, follow_torchs_dense_adamw_at_every_read) {
  const test::Reference r("adam_dense.h5");
  const auto shape = r.shape("table");
  const int64_t steps = shape[0], rows = shape[1], width = shape[2], tokens = r.shape("ids")[1];
  const std::vector<int32_t> ids = r.ints("ids");
  const std::vector<double> dy = r.doubles("dy"), table = r.doubles("table"), lr = r.doubles("lr");
  for (const char* way : {"replay", "closed"}) {
    Threads threads(2);
    Parameter p(r.tensor("init"), GradKind::kRowSparse);
    const auto rule = test::make_rule("adamw", with({{"lr", 1.0},
                                                     {"beta1", r.number("beta1")},
                                                     {"beta2", r.number("beta2")},
                                                     {"eps", r.number("eps")},
                                                     {"weight_decay", r.number("weight_decay")}},
                                                    "exact", way));
    const auto expected = [&](int64_t after, int64_t row) {
      const auto begin = table.begin() + ((after - 1) * rows + row) * width;
      return std::vector<double>(begin, begin + width);
    };
    double largest = 0;
    for (double x : table) largest = std::max(largest, std::abs(x));
    const double allowed = (kRealIsDouble ? 1e-9 : 2e-5) * largest;
    for (int64_t s = 1; s <= steps; ++s) {
      const std::vector<int32_t> batch(ids.begin() + (s - 1) * tokens, ids.begin() + s * tokens);
      rule->catch_up("p", p, batch);
      for (int32_t id : s > 1 ? batch : std::vector<int32_t>{})
        for (int64_t j = 0; j < width; ++j)
          ASSERT_NEAR(p.value().row(id)[static_cast<size_t>(j)], expected(s - 1, id)[static_cast<size_t>(j)], allowed)
              << way << ", step " << s;
      std::vector<Real> values(dy.begin() + (s - 1) * tokens * width, dy.begin() + s * tokens * width);
      test::give_row_grad(p, batch, Tensor::from({tokens, width}, values));
      rule->step("p", p, {.step = s, .lr_factor = lr[static_cast<size_t>(s - 1)]});
    }
    rule->flush("p", p);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t j = 0; j < width; ++j)
        EXPECT_NEAR(p.value().row(row)[static_cast<size_t>(j)], expected(steps, row)[static_cast<size_t>(j)], allowed)
            << way << ", row " << row;
  }
}

// How far one isolated touch moves a row, long after the start, in units of lr (eps = 0, g = 1, c1 = c2 = 1). With a = (1 - beta1)
// / sqrt(1 - beta2): the touch itself moves it by a; a dense row goes on moving by a r^s, r = beta1 / sqrt(beta2), in all a / (1 -
// r); a row that counts for itself has c1 = 1 - beta1, c2 = 1 - beta2 and moves by exactly 1. For betas .9, .999: 31.8, 3.16 and 1.
double isolated_touch(const test::FieldValues& fields) {
  constexpr double kLr = 1e-4;
  constexpr int64_t kTouch = 20000, kAfter = 1500;
  Threads threads(1);
  Parameter p(Tensor::zeros({2, 1}), GradKind::kRowSparse);
  test::FieldValues all = fields;
  all["lr"] = kLr;
  all["eps"] = 1e-30;
  all["weight_decay"] = 0.0;
  const auto rule = test::make_rule("adamw", all);
  for (int64_t s = 1; s <= kTouch + kAfter; ++s) {
    const std::vector<int32_t> ids = s == kTouch ? std::vector<int32_t>{0, 1} : std::vector<int32_t>{1};
    test::give_row_grad(p, ids, Tensor::full({std::ssize(ids), 1}, 1));
    rule->step("p", p, {.step = s});
  }
  rule->flush("p", p);
  return -static_cast<double>(p.value().data()[0]) / kLr;
}

TEST(ExactRows, frozen_rows_move_by_the_amounts_that_theory_gives_and_not_by_dense_ones) {
  const double a = 0.1 / std::sqrt(0.001), r = 0.9 / std::sqrt(0.999);
  EXPECT_NEAR(a / (1 - r), 31.8, 0.05);
  EXPECT_NEAR(isolated_touch({{"untouched", std::string("dense")}}), a / (1 - r), 1e-3 * a / (1 - r));
  EXPECT_NEAR(isolated_touch({{"untouched", std::string("exact")}}), a / (1 - r), 1e-3 * a / (1 - r));
  EXPECT_NEAR(isolated_touch({{"untouched", std::string("exact")}, {"catch_up", std::string("closed")}}), a / (1 - r),
              1e-3 * a / (1 - r));
  EXPECT_NEAR(isolated_touch({{"untouched", std::string("frozen")}}), a, 1e-4 * a);
  EXPECT_NEAR(isolated_touch({{"untouched", std::string("frozen")}, {"counter", std::string("row")}}), 1, 1e-4);
}

TEST(ExactRows, a_parameter_that_does_not_decay_does_not_when_its_rows_catch_up) {
  for (const char* catch_up : {"replay", "closed"}) {
    Parameter p(Tensor::full({2, 1}, 1), GradKind::kRowSparse);
    p.decays = false;
    const auto rule = test::make_rule(
        "adamw", {{"lr", 0.1}, {"weight_decay", 0.5}, {"untouched", std::string("exact")}, {"catch_up", std::string(catch_up)}});
    rule->prepare("p", p);
    for (int s = 1; s <= 5; ++s) {
      test::give_row_grad(p, {0}, Tensor::zeros({1, 1}));
      rule->step("p", p, {.step = s});
    }
    rule->flush("p", p);
    EXPECT_EQ(p.value().data()[1], 1) << catch_up;
  }
}

TEST(ExactRows, a_step_allocates_nothing_that_grows_with_the_table) {
  const auto bytes_of_a_step = [](int64_t rows) {
    Parameter p(Tensor::zeros({rows, 8}), GradKind::kRowSparse);
    const auto rule = test::make_rule("adamw", {{"untouched", std::string("exact")}});
    rule->prepare("p", p);
    reset_pool_peak();
    const int64_t before = pool_stats().bytes_in_use;
    for (uint32_t s = 1; s <= 3; ++s) {
      const Ids ids = test::random_ids({100}, rows, s);
      rule->catch_up("p", p, ids.values());
      p.row_grad().append(ids, test::random_tensor({100, 8}, s));
      rule->step("p", p, {.step = s});
    }
    return pool_stats().peak_bytes_in_use - before;
  };
  EXPECT_LE(bytes_of_a_step(1000000), bytes_of_a_step(1000) * 2);
}

TEST(ExactRows, catching_up_a_row_outside_the_table_is_an_error) {
  Parameter p(Tensor::zeros({4, 2}), GradKind::kRowSparse);
  const auto rule = test::make_rule("adamw", {{"untouched", std::string("exact")}});
  test::give_row_grad(p, {1}, Tensor::full({1, 2}, 1));
  rule->step("p", p, {.step = 1});
  EXPECT_THROW(rule->catch_up("p", p, std::vector<int32_t>{4}), Error);
  EXPECT_THROW(rule->catch_up("p", p, std::vector<int32_t>{-1}), Error);
}

}  // namespace
}  // namespace rowan
