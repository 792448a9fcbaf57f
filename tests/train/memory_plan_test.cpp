#include "train/memory_plan.h"

#include <gmock/gmock.h>

#include "tests/support/small_run.h"
#include "train/plan.h"

namespace rowan {
namespace {

// A model in which large buffers count and the tiles' small ones do not.
Config sized(const test::SmallRun& files, std::vector<std::string> more) {
  std::vector<std::string> all = {"model.d_model=64",      "model.n_head=4",   "model.n_layer=3",
                                  "model.max_seq_len=128", "data.seq_len=128", "data.batch_size=4"};
  all.insert(all.end(), more.begin(), more.end());
  return with_known_vocabulary(files.config(all));
}

class MemoryPlanOf : public ::testing::TestWithParam<std::vector<std::string>> {};

TEST_P(MemoryPlanOf, a_session_is_within_a_tenth_of_what_it_takes) {
  const test::SmallRun files;
  const Config config = sized(files, GetParam());
  const MemoryPlan plan = plan_memory(config);
  release_pool();
  const PoolStats before = pool_stats();
  reset_pool_peak();
  TrainSession session(config);
  session.step();
  session.step();
  const PoolStats after = pool_stats();
  const auto used = static_cast<double>(after.peak_bytes_in_use - before.bytes_in_use);
  EXPECT_NEAR(static_cast<double>(plan.training) / used, 1, 0.1) << plan.training << " planned, " << used << " used";
  const auto held = static_cast<double>(after.bytes_held - before.bytes_held);
  EXPECT_NEAR(static_cast<double>(plan.pool) / held, 1, 0.1) << plan.pool << " planned, " << held << " held";
}

INSTANTIATE_TEST_SUITE_P(
    Configs, MemoryPlanOf,
    ::testing::Values(std::vector<std::string>{}, std::vector<std::string>{"model.tied=true"},
                      std::vector<std::string>{"model.mlp=swiglu", "model.norm=rmsnorm", "model.positions=rope", "model.bias=false",
                                               "model.n_kv_head=2"},
                      std::vector<std::string>{"model.dropout=0.1"}, std::vector<std::string>{"train.grad_accum=3"},
                      std::vector<std::string>{"train.recompute=true"},
                      std::vector<std::string>{"train.loss=sampled", "train.sampled.negatives=10", "train.grad_accum=2"},
                      std::vector<std::string>{"train.grad_accum=20", "model.n_layer=1"},
                      std::vector<std::string>{"train.loss=sampled", "train.sampled.negatives=10", "train.grad_accum=16"},
                      std::vector<std::string>{"model.tied=true", "train.tied_two_source=true"},
                      std::vector<std::string>{"model.tied=true", "train.untie_at=1"},
                      std::vector<std::string>{"optim.group.0.params=blocks.*.mlp.*.weight", "optim.group.0.rule=muon"},
                      std::vector<std::string>{"optim.rule=sgd", "data.batch_size=1"}));

// Readers see rows that lag behind brought up to date, and training has those from before kept for it.
class MemoryPlanOfRowsThatLag : public ::testing::TestWithParam<std::vector<std::string>> {};

TEST_P(MemoryPlanOfRowsThatLag, counts_what_evaluation_and_saving_keep) {
  const test::SmallRun files;
  std::vector<std::string> sets = GetParam();
  sets.insert(sets.end(), {"model.vocab_size=20000", "optim.group.0.params=embed.tokens.weight"});
  const Config config = sized(files, sets);
  const MemoryPlan plan = plan_memory(config);
  TrainSession session(config);
  session.step();
  session.step();
  const int64_t training = pool_stats().bytes_in_use;
  session.model();  // flushed
  const auto kept = static_cast<double>(pool_stats().bytes_in_use - training);
  const auto table = static_cast<double>(20000 * 64 * sizeof(Real));
  EXPECT_NEAR(static_cast<double>(plan.flushed), kept, 0.1 * table) << kept << " kept";
  const auto image = static_cast<double>(make_image(session).bytes().size());
  EXPECT_NEAR(static_cast<double>(plan.checkpoint) / image, 1, 0.1) << image << " in the image";
}

INSTANTIATE_TEST_SUITE_P(
    Settings, MemoryPlanOfRowsThatLag,
    ::testing::Values(std::vector<std::string>{}, std::vector<std::string>{"optim.group.0.untouched=exact"},
                      std::vector<std::string>{"optim.group.0.untouched=exact", "optim.group.0.catch_up=closed"},
                      std::vector<std::string>{"optim.group.0.untouched=frozen", "optim.group.0.decay=deferred"}));

TEST(MemoryPlan, recompute_saves_most_of_the_activations) {
  const test::SmallRun files;
  const MemoryPlan kept = plan_memory(sized(files, {"model.n_layer=12"}));
  const MemoryPlan again = plan_memory(sized(files, {"model.n_layer=12", "train.recompute=true"}));
  EXPECT_LT(again.activations, kept.activations / 8);
  EXPECT_LT(again.training, kept.training);
  EXPECT_EQ(again.weights, kept.weights);
}

// Of a large vocabulary, which nothing but the table, the head and their state then has the size of.
TEST(MemoryPlan, a_sampled_head_needs_no_gradient_of_the_vocabularys_size) {
  const test::SmallRun files;
  const MemoryPlan full = plan_memory(sized(files, {"model.vocab_size=50000"}));
  const MemoryPlan sampled = plan_memory(sized(files, {"model.vocab_size=50000", "train.loss=sampled"}));
  const auto table = static_cast<int64_t>(50000 * 64 * sizeof(Real));
  EXPECT_EQ(sampled.weights, full.weights);
  EXPECT_EQ(sampled.optimizer_state, full.optimizer_state);
  EXPECT_LT(sampled.gradients, full.gradients - 0.9 * table);
  EXPECT_LT(sampled.training, full.training - 0.9 * table);
}

// Moments in bytes and steps of rows, which go to the writer by value before the image is made.
TEST(MemoryPlan, counts_what_saving_copies) {
  const test::SmallRun files;
  const auto copied = [&](std::vector<std::string> sets) {
    sets.emplace_back("model.vocab_size=5000");
    return plan_memory(sized(files, sets)).copied;
  };
  EXPECT_EQ(copied({}), 0);
  const Config config = sized(files, {"model.vocab_size=5000"});
  EXPECT_EQ(copied({"optim.rule=adam8bit"}), 2 * plan_memory(config).weights / static_cast<int64_t>(sizeof(Real)));
  EXPECT_EQ(copied({"optim.group.0.params=embed.tokens.weight", "optim.group.0.untouched=exact"}), 5000 * 4);
}

TEST(MemoryPlan, two_sources_have_one_table_and_two_states) {
  const test::SmallRun files;
  const MemoryPlan one = plan_memory(sized(files, {"model.tied=true", "model.vocab_size=5000"}));
  const MemoryPlan two = plan_memory(sized(files, {"model.tied=true", "model.vocab_size=5000", "train.tied_two_source=true"}));
  EXPECT_EQ(two.weights, one.weights);
  EXPECT_EQ(two.optimizer_state, one.optimizer_state + 2 * static_cast<int64_t>(5000 * 64 * sizeof(Real)));
}

TEST(Plan, says_what_becomes_of_the_head) {
  const test::SmallRun files;
  const auto remarks = [&](std::vector<std::string> sets) {
    std::string all;
    for (const std::string& remark : plan_sizes(sized(files, sets)).remarks) all += remark + "\n";
    return all;
  };
  EXPECT_THAT(remarks({"train.loss=sampled", "train.sampled.negatives=10"}), ::testing::HasSubstr("sampled softmax"));
  EXPECT_THAT(remarks({"model.tied=true", "train.tied_two_source=true"}), ::testing::HasSubstr("two sources"));
  EXPECT_THAT(remarks({"model.tied=true", "train.untie_at=3"}), ::testing::HasSubstr("untied after step 3"));
  const Plan tied = plan_sizes(sized(files, {"model.tied=true", "train.untie_at=30"}));  // of 10 steps
  EXPECT_THAT(tied.parameters, plan_sizes(sized(files, {"model.tied=true"})).parameters);
  EXPECT_THAT(plan_sizes(sized(files, {"model.tied=true", "train.untie_at=3"})).parameters,
              plan_sizes(sized(files, {})).parameters);
}

TEST(MemoryPlan, state_is_that_of_the_group_that_takes_a_parameter) {
  const test::SmallRun files;
  const Config adam = sized(files, {}), mixed = sized(files, {"optim.rule=sgd"});
  EXPECT_EQ(plan_memory(adam).optimizer_state, 2 * plan_memory(adam).weights);
  EXPECT_EQ(plan_memory(mixed).optimizer_state, 0);
}

TEST(Plan, counts_a_known_model) {
  Config config =
      parse_config("[model]\nd_model = 768\nn_layer = 12\nn_head = 12\nvocab_size = 50257\nmax_seq_len = 1024\n", "gpt2");
  config = with_known_vocabulary(config);
  const Plan plan = plan_sizes(config);
  EXPECT_EQ(plan.parameters, 124439808);  // GPT-2's smallest, as published
  EXPECT_EQ(plan.flops_per_token, 6.0 * 124439808 + 12.0 * 12 * 768 * 64);
}

// A token meets its own row, its target's and those drawn, however many there are.
TEST(Plan, counts_the_rows_alone_that_a_sampled_head_multiplies) {
  const test::SmallRun files;
  const auto flops = [&](const char* vocabulary, std::vector<std::string> more) {
    more.emplace_back(vocabulary);
    return plan_sizes(sized(files, more)).flops_per_token;
  };
  const std::vector<std::string> sampled = {"train.loss=sampled", "train.sampled.negatives=10"};
  const double small = flops("model.vocab_size=1000", sampled);
  EXPECT_EQ(flops("model.vocab_size=1000000", sampled), small);
  const double blocks = flops("model.vocab_size=1", {}) - 6.0 * 2 * 64;
  EXPECT_EQ(small, blocks + 6.0 * (1 + 1 + 10) * 64);
}

TEST(Plan, says_when_the_vocabulary_cannot_be_known) {
  try {
    with_known_vocabulary(parse_config("[model]\nd_model = 8\nn_head = 2\n", "small"));
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kUsage);
    EXPECT_THAT(e.what(), ::testing::HasSubstr("vocab_size"));
    EXPECT_THAT(e.hint(), ::testing::HasSubstr("data.train"));
  }
}

}  // namespace
}  // namespace rowan
