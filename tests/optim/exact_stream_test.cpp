// Exact rows over random streams of batches with gaps of up to 10^5 steps: every schedule, decays from 0 to 1, a stop and a resume
// in the middle of gaps. Rows that replay have the dense run's bits whenever they are read; every jump keeps the bound that
// optim/adam_jump.h states, against the same steps in long double from where the row stood.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/parallel.h"
#include "optim/groups.h"
#include "optim/schedule.h"
#include "tests/support/compare.h"
#include "tests/support/optim.h"
#include "tests/support/random.h"

namespace rowan {
namespace {

using Wide = long double;
using Text = std::string;

constexpr double kHalfUlp = std::numeric_limits<Real>::epsilon() / 2;
constexpr int64_t kRows = 7, kWidth = 3;
constexpr double kLr = 0.02, kBeta1 = 0.9, kBeta2 = 0.999, kEps = 1e-8;

struct Stream {
  const char* kind;
  double decay;
  int64_t steps, longest_gap;

  Schedule schedule() const {
    Schedule s;
    s.kind = kind;
    s.warmup = steps / 20;
    s.min_ratio = decay == 0 ? 0 : 0.1;
    return s;
  }
  double factor(int64_t step) const { return schedule().factor(step, steps); }

  // Row 0 is in every batch, row 1 in the second and the last alone, the others after gaps that are spread evenly on a scale of
  // logarithms.
  std::vector<std::vector<int32_t>> batches() const {
    std::vector<std::vector<int32_t>> all(static_cast<size_t>(steps) + 1, {0});
    all[2].push_back(1);
    all.back().push_back(1);
    for (int32_t row = 2; row < kRows; ++row) {
      uint64_t drawn = 0;
      for (int64_t step = row; step <= steps;) {
        all[static_cast<size_t>(step)].push_back(row);
        const double u = random_uniform(test::test_key(static_cast<uint32_t>(row)), drawn++);
        step += 1 + static_cast<int64_t>(std::pow(static_cast<double>(longest_gap), u));
      }
    }
    return all;
  }
};

class Learner {
 public:
  Learner(const Stream& stream, const Text& untouched, const Text& catch_up)
      : fields_({{"lr", kLr},
                 {"beta1", kBeta1},
                 {"beta2", kBeta2},
                 {"eps", kEps},
                 {"weight_decay", stream.decay},
                 {"untouched", untouched},
                 {"catch_up", catch_up}}),
        p_(test::random_tensor({kRows, kWidth}, 1), GradKind::kRowSparse),
        set_(make_set(fields_)) {}

  void read(const std::vector<int32_t>& ids) { set_->catch_up("p", ids); }
  void step(const std::vector<int32_t>& ids, const Tensor& dy, const StepInfo& info) {
    test::give_row_grad(p_, ids, dy);
    set_->step(info);
  }
  // Into another object, built with other settings.
  void resume() {
    test::MemoryState state = this->state();
    state.load();
    set_ = make_set({{"lr", 0.5}, {"beta1", 0.3}, {"weight_decay", 0.7}});
    set_->visit_state(state);
  }
  test::MemoryState state() {
    test::MemoryState state;
    set_->visit_state(state);
    return state;
  }
  Tensor row(int64_t r) const { return Tensor::from({kWidth}, p_.value().row(r)); }

 private:
  std::unique_ptr<OptimizerSet> make_set(const test::FieldValues& fields) {
    return std::make_unique<OptimizerSet>(std::vector<ParameterGroup>{}, test::make_rule("adamw", fields),
                                          std::vector<NamedParameter>{{"p", &p_}});
  }
  test::FieldValues fields_;
  Parameter p_;
  std::unique_ptr<OptimizerSet> set_;
};

// One element over the steps (last, now] without gradients, with the settings as Real holds them.
struct Element {
  Wide w, m, v;
  void pass(const Stream& stream, int64_t last, int64_t now) {
    const Wide keep1 = 1 - static_cast<Wide>(static_cast<Real>(1 - kBeta1)), keep2 = static_cast<Real>(kBeta2);
    for (int64_t s = last + 1; s <= now; ++s) {
      const double lr = kLr * stream.factor(s);
      m *= keep1;
      v *= keep2;
      w *= static_cast<Real>(1 - lr * stream.decay);
      const Wide c1 = 1 - std::pow(static_cast<Wide>(kBeta1), static_cast<Wide>(s));
      const Wide c2 = 1 - std::pow(static_cast<Wide>(kBeta2), static_cast<Wide>(s));
      w -= lr / c1 * m / (std::sqrt(v) / std::sqrt(c2) + static_cast<Wide>(kEps));
    }
  }
};

struct Row {
  Tensor w, m, v;
  int64_t last = 0;
};

Row row_of(Learner& learner, int32_t r) {
  const test::MemoryState state = learner.state();
  const auto moment = [&](const char* name) { return Tensor::from({kWidth}, std::get<Tensor>(state.values().at(name)).row(r)); };
  return {learner.row(r), moment("p/exp_avg"), moment("p/exp_avg_sq"),
          std::get<std::vector<int32_t>>(state.values().at("p/last_steps"))[static_cast<size_t>(r)]};
}

void expect_within_bounds(const Stream& stream, const Row& before, const Row& after, int64_t now) {
  const auto steps = static_cast<double>(now - before.last);
  const double tiny = static_cast<double>(std::numeric_limits<Real>::min());  // what is smaller is flushed to zero
  for (int64_t j = 0; j < kWidth; ++j) {
    Element e{before.w.data()[j], before.m.data()[j], before.v.data()[j]};
    e.pass(stream, before.last, now);
    const double w = static_cast<double>(e.w), largest = std::max(std::abs(w), std::abs(static_cast<double>(before.w.data()[j])));
    const double logs = 1.05 * kLr * stream.decay * static_cast<double>(now);   // at least the sum of -log(1 - lr decay)
    const double of_steps = kRealIsDouble ? steps * kHalfUlp * (1 + logs) : 0;  // double is no wider than Real there
    ASSERT_NEAR(after.w.data()[j], w, kHalfUlp * (std::abs(w) + 2 * kLr) + of_steps * largest)
        << stream.kind << ", decay " << stream.decay << ": " << steps << " steps before step " << now;
    for (const auto& [got, expected] : {std::pair{after.m.data()[j], e.m}, {after.v.data()[j], e.v}})
      ASSERT_NEAR(static_cast<double>(got), static_cast<double>(expected),
                  (kHalfUlp + 2 * of_steps) * std::abs(static_cast<double>(expected)) + tiny)
          << stream.kind << ": moments after " << steps << " steps";
  }
}

void run(const Stream& stream) {
  const Threads threads(2);
  Learner dense(stream, "dense", "replay"), replay(stream, "exact", "replay"), closed(stream, "exact", "closed");
  const std::vector<std::vector<int32_t>> batches = stream.batches();
  const Tensor constant = Tensor::full({1, kWidth}, Real(0.5));
  int64_t longest = 0, jumps = 0;
  for (int64_t s = 1; s <= stream.steps; ++s) {
    const std::vector<int32_t>& ids = batches[static_cast<size_t>(s)];
    std::vector<Row> before;
    for (int32_t id : ids)
      if (id != 0) before.push_back(row_of(closed, id));
    replay.read(ids);
    closed.read(ids);
    for (size_t k = 1; k < ids.size(); ++k) {
      const Row& start = before[k - 1];
      ASSERT_TRUE(test::same_bits(replay.row(ids[k]), dense.row(ids[k])))
          << stream.kind << ", decay " << stream.decay << ": row " << ids[k] << " before step " << s;
      expect_within_bounds(stream, start, row_of(closed, ids[k]), s - 1);
      if (::testing::Test::HasFatalFailure()) return;
      longest = std::max(longest, s - 1 - start.last);
      ++jumps;
    }
    const Tensor dy =
        ids.size() == 1 ? constant : test::random_tensor({std::ssize(ids), kWidth}, 100 + static_cast<uint32_t>(s % 1000));
    for (Learner* learner : {&dense, &replay, &closed}) learner->step(ids, dy, {.step = s, .lr_factor = stream.factor(s)});
    if (s == stream.steps / 3 || s == stream.steps - 5) {  // row 1, at least, is in the middle of its gap
      replay.resume();
      closed.resume();
    }
  }
  EXPECT_GE(longest, stream.longest_gap);
  EXPECT_GE(jumps, 30);
}

class ExactStream : public ::testing::TestWithParam<const char*> {};

TEST_P(ExactStream, with_gaps_of_up_to_100000_steps) {
  run({.kind = GetParam(), .decay = 0.01, .steps = 100003, .longest_gap = 100000});
}

TEST_P(ExactStream, with_decays_from_0_to_1) {
  for (const double decay : {0.0, 0.001, 0.1, 0.5, 1.0})
    run({.kind = GetParam(), .decay = decay, .steps = 2503, .longest_gap = 2500});
}

INSTANTIATE_TEST_SUITE_P(Schedules, ExactStream, ::testing::Values("constant", "cosine", "linear", "wsd"),
                         [](const auto& kind) { return std::string(kind.param); });

}  // namespace
}  // namespace rowan
