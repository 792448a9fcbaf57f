// A head that is untied in the middle of a run, and a tied table that is updated from two sources.
#include "train/untie.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/parallel.h"
#include "tests/support/compare.h"
#include "tests/support/optim.h"
#include "tests/support/random.h"
#include "tests/support/session_runs.h"
#include "train/evaluate.h"

namespace rowan {
namespace {

using test::arrays_of;
using test::refusal;
using test::saved;
using test::Trace;
using test::uninterrupted;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kUntie = 4, kSteps = 8;

using Sets = std::vector<std::string>;

Sets with(Sets sets, const Sets& more) {
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

const Sets kExactTable = {"optim.group.0.params=embed.tokens.weight",
                          "optim.group.0.rule=adamw",
                          "optim.group.0.untouched=exact",
                          "optim.group.0.lr=1e-2",
                          "optim.group.1.params=head.weight",
                          "optim.group.1.rule=adamw",
                          "optim.group.1.lr=3e-3"};

struct Case {
  std::string name;
  Sets sets;
};

class Untie : public ::testing::TestWithParam<Case> {
 protected:
  Config config(int64_t untie_at = kUntie) const {
    return run_.config(with({"model.tied=true", "train.untie_at=" + std::to_string(untie_at)}, GetParam().sets));
  }
  test::SmallRun run_;
};

// The state after step `untie_at` is that of a tied run, with the head and all of its optimizer state copied by hand.
TEST_P(Untie, the_state_is_a_copy_of_the_tied_one) {
  TrainSession tied(config(1000)), untied(config());
  Trace a, b;
  test::train_until(tied, kUntie, a);
  test::train_until(untied, kUntie, b);
  EXPECT_EQ(a.losses, b.losses);
  const Checkpoint before = saved(run_, tied, "tied"), after = saved(run_, untied, "untied");

  std::map<std::string, std::string> expected = arrays_of(before, "/model");
  expected["/model/head.weight"] = expected.at("/model/embed.tokens.weight");
  EXPECT_EQ(arrays_of(after, "/model"), expected);
  expected = arrays_of(before, "/optim");
  for (const auto& [path, value] : arrays_of(before, "/optim/embed.tokens.weight/"))
    expected["/optim/head.weight" + path.substr(std::string("/optim/embed.tokens.weight").size())] = value;
  std::map<std::string, std::string> state = arrays_of(after, "/optim");
  for (const char* added : {"last_steps", "missed_lr", "ahead_rows", "ahead_base"})  // new in a table that is updated by rows
    state.erase(std::string("/optim/embed.tokens.weight/") + added);
  EXPECT_EQ(state, expected);
  EXPECT_GT(arrays_of(after, "/optim/head.weight/").size(), 1u);
}

// From then on the two are parameters like any others: an untied model with that state trains to the same bits.
TEST_P(Untie, goes_on_as_an_untied_model_would) {
  TrainSession session(config());
  Trace a, b;
  test::train_until(session, kUntie, a);
  Checkpoint checkpoint = saved(run_, session, "at-untie");
  TrainSession untied(run_.config(with({"model.tied=false"}, GetParam().sets)));
  untied.load(checkpoint);
  a = {};
  test::train_until(session, kSteps, a);
  test::train_until(untied, kSteps, b);
  EXPECT_EQ(a.losses, b.losses);
  EXPECT_EQ(arrays_of(saved(run_, session, "a"), "/optim"), arrays_of(saved(run_, untied, "b"), "/optim"));
  EXPECT_EQ(arrays_of(saved(run_, session, "a"), "/model"), arrays_of(saved(run_, untied, "b"), "/model"));
}

TEST_P(Untie, resumes_exactly_before_at_and_after_the_step) {
  const Trace whole = uninterrupted(config(), kSteps);
  for (int64_t stop = 0; stop <= kSteps; ++stop)
    EXPECT_EQ(whole, test::interrupted(
                         run_, [&] { return config(); }, stop, kSteps))
        << "stopped at " << stop;
}

TEST_P(Untie, the_number_of_threads_changes_nothing) {
  const Trace one = uninterrupted(config(), kSteps);
  for (int count : {1, 2, 4}) {
    const Threads threads(count);
    EXPECT_EQ(one, uninterrupted(config(), kSteps)) << count << " threads";
  }
}

TEST_P(Untie, a_session_goes_back_over_the_step_and_forward_again) {
  TrainSession session(config());
  Trace first, again;
  test::train_until(session, 2, first);
  Checkpoint early = saved(run_, session, "early");
  first = {};
  test::train_until(session, kSteps, first);
  first.digest = make_image(session).state_digest();
  session.load(early);
  EXPECT_TRUE(session.model().config().tied);
  test::train_until(session, kSteps, again);
  again.digest = make_image(session).state_digest();
  EXPECT_EQ(first, again);
}

TEST_P(Untie, a_model_is_loaded_as_it_is_at_its_step) {
  TrainSession session(config());
  Trace trace;
  for (const int64_t step : {kUntie - 1, kUntie, kUntie + 2}) {
    test::train_until(session, step, trace);
    Checkpoint checkpoint = saved(run_, session, "load");
    const LoadedModel loaded = load_model(checkpoint);
    EXPECT_EQ(loaded.model->config().tied, step < kUntie);
    const auto loss = [&](Gpt& model) { return evaluate(model, session.corpus().val, *session.corpus().tokenizer, 2).loss; };
    EXPECT_EQ(loss(*loaded.model), loss(session.model()));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Settings, Untie,
    ::testing::Values(Case{"adamw", {}}, Case{"exact_closed", with(kExactTable, {"optim.group.0.catch_up=closed"})},
                      Case{"deferred", with(kExactTable, {"optim.group.0.untouched=frozen", "optim.group.0.decay=deferred"})},
                      Case{"sgd", {"optim.rule=sgd", "optim.momentum=0.9"}}, Case{"exact_table", kExactTable},
                      Case{"exact_positions", {"optim.untouched=exact", "train.grad_accum=2"}}),
    [](const auto& c) { return c.param.name; });

// --- two sources

class TwoSource : public ::testing::Test {
 protected:
  Config config(const Sets& more = {}) const { return run_.config(with({"model.tied=true", "train.tied_two_source=true"}, more)); }
  test::SmallRun run_;
};

// The two gradients add up to the one of a tied table.
TEST_F(TwoSource, splits_the_gradient_of_the_tied_table) {
  GptConfig c;
  c.d_model = 8, c.n_layer = 1, c.n_head = 2, c.vocab_size = 11, c.max_seq_len = 6;
  Gpt tied(c, 3), split(c, 3, HeadGrads::kTwoSource);
  const Ids tokens({2, 5}, {1, 2, 3, 2, 1, 9, 9, 0, 1, 4}), targets({2, 5}, {2, 3, 2, 1, 5, 9, 0, 1, 4, 10});
  backward(tied.loss(tokens, targets, 0.1, {}));
  backward(split.loss(tokens, targets, 0.1, {}));
  Parameter& lookup = split.token_table();
  lookup.row_grad().coalesce();
  EXPECT_EQ(lookup.row_grad().ids(), (std::vector<int32_t>{0, 1, 2, 3, 4, 9}));
  Tensor sum = split.shared_head()->grad().clone();
  lookup.row_grad().add_to(sum);
  test::expect_close(test::as_doubles(sum), test::as_doubles(tied.token_table().grad()), kRealIsDouble ? 1e-12 : 1e-5);
  EXPECT_EQ(split.shared_head()->value().data(), lookup.value().data());
  EXPECT_EQ(tied.shared_head(), nullptr);
  EXPECT_EQ(parameter_count(split), parameter_count(tied));
}

// AdamW of both sources, in double: moments apart, decay once, lookups in the rows that were read.
TEST_F(TwoSource, updates_follow_plain_loops) {
  constexpr int64_t kRows = 5, kWidth = 3;
  constexpr double kLr = 0.01, kDecay = 0.3, kBeta1 = 0.9, kBeta2 = 0.999, kEps = 1e-8;
  Parameter lookup(test::random_tensor({kRows, kWidth}, 1), GradKind::kRowSparse), head(lookup.value());
  lookup.decays = false;
  const auto rule = std::shared_ptr<Optimizer>(
      test::make_rule("adamw", {{"lr", kLr}, {"weight_decay", kDecay}, {"untouched", std::string("frozen")}}));
  OptimizerSet set({}, rule, {{"embed.tokens.weight", &lookup}, {"head.weight", &head}});
  std::vector<double> w = test::as_doubles(lookup.value());
  struct Moments {
    std::vector<double> m = std::vector<double>(kRows * kWidth, 0), v = m;
  } of_lookup, of_head;
  const auto adam = [&](Moments& s, size_t i, double g, int64_t t) {
    s.m[i] = kBeta1 * s.m[i] + (1 - kBeta1) * g;
    s.v[i] = kBeta2 * s.v[i] + (1 - kBeta2) * g * g;
    const auto step = static_cast<double>(t);
    w[i] -= kLr * (s.m[i] / (1 - std::pow(kBeta1, step))) / (std::sqrt(s.v[i] / (1 - std::pow(kBeta2, step))) + kEps);
  };
  for (uint32_t t = 1; t <= 5; ++t) {
    const std::vector<int32_t> ids = {static_cast<int32_t>(t % kRows), 2};
    const Tensor dy = test::random_tensor({2, kWidth}, 10 + t), g = test::random_tensor({kRows, kWidth}, 20 + t);
    test::give_row_grad(lookup, ids, dy);
    test::give_dense_grad(head, g);
    set.step({.step = t});
    for (size_t k = 0; k < (ids[0] == 2 ? 1u : 2u); ++k)
      for (size_t j = 0; j < kWidth; ++j) {
        double sum = static_cast<double>(dy.data()[k * kWidth + j]);
        if (ids[0] == 2) sum += static_cast<double>(dy.data()[kWidth + j]);
        adam(of_lookup, static_cast<size_t>(ids[k]) * kWidth + j, sum, t);
      }
    for (size_t i = 0; i < kRows * kWidth; ++i) {
      w[i] *= 1 - kLr * kDecay;
      adam(of_head, i, static_cast<double>(g.data()[i]), t);
    }
  }
  test::expect_close(test::as_doubles(lookup.value()), w, kRealIsDouble ? 1e-12 : 1e-5);
}

TEST_F(TwoSource, keeps_one_table_and_two_states_in_a_checkpoint) {
  TrainSession session(config());
  Trace trace;
  test::train_until(session, 3, trace);
  const Checkpoint checkpoint = saved(run_, session, "two");
  EXPECT_FALSE(checkpoint.contains("/model/head.weight"));
  for (const char* name : {"embed.tokens.weight", "head.weight"})
    for (const char* slot : {"exp_avg", "exp_avg_sq", "step"})
      EXPECT_TRUE(checkpoint.contains(std::string("/optim/") + name + "/" + slot)) << name << " " << slot;
  EXPECT_NE(arrays_of(checkpoint, "/optim/embed.tokens.weight/exp_avg").begin()->second,
            arrays_of(checkpoint, "/optim/head.weight/exp_avg").begin()->second);
}

TEST_F(TwoSource, resumes_exactly_and_for_any_number_of_threads) {
  for (const Sets& more :
       {Sets{}, Sets{"train.untie_at=3"},
        Sets{"optim.group.0.params=embed.tokens.weight", "optim.group.0.rule=sparse_adam", "train.untie_at=3"}}) {
    const Trace whole = uninterrupted(config(more), 6);
    for (int64_t stop = 0; stop <= 6; ++stop)
      EXPECT_EQ(whole, test::interrupted(
                           run_, [&] { return config(more); }, stop, 6))
          << "stopped at " << stop;
    for (int count : {2, 4}) {
      const Threads threads(count);
      EXPECT_EQ(whole, uninterrupted(config(more), 6)) << count << " threads";
    }
  }
}

TEST_F(TwoSource, each_source_keeps_its_moments_when_the_head_is_untied) {
  TrainSession tied(config()), untied(config({"train.untie_at=3"}));
  Trace a, b;
  test::train_until(tied, 3, a);
  test::train_until(untied, 3, b);
  const Checkpoint before = saved(run_, tied, "tied"), after = saved(run_, untied, "untied");
  EXPECT_EQ(arrays_of(before, "/optim"), arrays_of(after, "/optim"));
  EXPECT_EQ(arrays_of(before, "/model").size() + 1, arrays_of(after, "/model").size());
}

// --- what makes no sense

TEST(TiedConfig, is_refused_where_it_makes_no_sense_and_says_why) {
  EXPECT_THAT(refusal({"train.untie_at=3"}), HasSubstr("model.tied = false: it never is"));
  EXPECT_THAT(refusal({"train.untie_at=3", "model.tied=true", "optim.group.0.params=head.weight", "optim.group.0.rule=sgd"}),
              HasSubstr("keep different state"));
  const Sets counters = {"train.untie_at=3",         "model.tied=true",           "optim.group.0.params=head.*",
                         "optim.group.0.rule=adamw", "optim.group.0.counter=row", "optim.group.0.untouched=frozen"};
  EXPECT_THAT(refusal(counters), AllOf(HasSubstr("keep different state"), HasSubstr("give both the same counter")));
  EXPECT_THAT(refusal({"train.untie_at=3", "model.tied=true", "optim.group.0.params=head.*", "optim.group.0.lr=1"}), "");
  EXPECT_THAT(refusal({"model.tied=true", "optim.group.0.params=head.*", "optim.group.0.lr=1"}), HasSubstr("matches no parameter"));
  EXPECT_THAT(refusal({"train.tied_two_source=true"}), HasSubstr("train.tied_two_source is for a tied table"));
  const Sets two = {"model.tied=true", "train.tied_two_source=true"};
  EXPECT_THAT(refusal(with(two, {"optim.untouched=exact"})), HasSubstr("softmax reads every row"));
  EXPECT_THAT(refusal(with(two, {"optim.group.0.params=head.weight", "optim.group.0.rule=sparse_adam"})),
              HasSubstr("of every row"));
  EXPECT_THAT(refusal(with(two, {"optim.group.0.params=head.weight", "optim.group.0.rule=adam", "optim.group.0.weight_decay=0"})),
              HasSubstr("would never be applied"));
  EXPECT_THAT(refusal(with(two, {"train.loss=sampled"})), HasSubstr("train.loss"));
}

TEST(MuonConfig, is_for_the_matrices_of_blocks) {
  const Sets matrices = {"optim.group.0.params=blocks.*.attn.*.weight", "optim.group.0.rule=muon",
                         "optim.group.1.params=blocks.*.mlp.*.weight", "optim.group.1.rule=muon"};
  EXPECT_EQ(refusal(matrices), "");
  const auto refused = [](const std::string& glob, const std::string& parameter, const std::string& why) {
    const std::string text = refusal({"optim.group.0.params=" + glob, "optim.group.0.rule=muon"});
    EXPECT_THAT(text, HasSubstr("optim.group.0.rule = \"muon\""));
    EXPECT_THAT(text, HasSubstr(parameter + " is " + why));
    EXPECT_THAT(text, HasSubstr("[[optim.group]] params = \"blocks.*.attn.*.weight\""));
  };
  refused("embed.*", "embed.tokens.weight", "an embedding table");
  refused("embed.pos*", "embed.positions.weight", "an embedding table");
  refused("head.*", "head.weight", "the head");
  refused("blocks.*", "blocks.0.norm1.weight", "a vector");
  EXPECT_THAT(refusal({"optim.rule=muon", "optim.weight_decay=0"}), HasSubstr("optim.rule = \"muon\""));
}

TEST(MuonRun, trains_resumes_exactly_and_for_any_number_of_threads) {
  const test::SmallRun run;
  const auto config = [&] {
    return run.config({"optim.group.0.params=blocks.*.attn.*.weight", "optim.group.0.rule=muon",
                       "optim.group.1.params=blocks.*.mlp.*.weight", "optim.group.1.rule=muon"});
  };
  const Trace whole = uninterrupted(config(), 12);
  EXPECT_LT(whole.losses.back(), whole.losses.front() - 0.3);
  for (const int64_t stop : {0, 5, 12}) EXPECT_EQ(whole, test::interrupted(run, config, stop, 12)) << "stopped at " << stop;
  for (int count : {2, 3, 4}) {
    const Threads threads(count);
    EXPECT_EQ(whole, uninterrupted(config(), 12)) << count << " threads";
  }
}

}  // namespace
}  // namespace rowan
