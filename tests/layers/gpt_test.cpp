#include "layers/gpt.h"

#include <gtest/gtest.h>

#include <map>

#include "core/parallel.h"
#include "tests/support/compare.h"
#include "tests/support/random.h"

namespace rowan {
namespace {

GptConfig gpt2_shape() {
  GptConfig c;
  c.vocab_size = 19;
  c.d_model = 12;
  c.n_layer = 2;
  c.n_head = 3;
  c.max_seq_len = 10;
  return c;
}

GptConfig llama_shape() {
  GptConfig c = gpt2_shape();
  c.n_head = 6;
  c.n_kv_head = 2;
  c.positions = "rope";
  c.norm = "rmsnorm";
  c.mlp = "swiglu";
  c.bias = false;
  c.tied = false;
  return c;
}

std::map<std::string, std::string> shapes_of(Gpt& model) {
  std::map<std::string, std::string> out;
  for_each_parameter(model, [&](const std::string& name, Parameter& p) { out[name] = p.shape().str(); });
  return out;
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(Gpt, gpt2_shape_has_the_parameters_that_checkpoints_promise) {
  GptConfig config = gpt2_shape();
  config.n_layer = 1;
  Gpt model(config, 1);
  EXPECT_EQ(shapes_of(model), (std::map<std::string, std::string>{{"embed.tokens.weight", "(19, 12)"},
                                                                  {"embed.positions.weight", "(10, 12)"},
                                                                  {"blocks.0.norm1.weight", "(12)"},
                                                                  {"blocks.0.norm1.bias", "(12)"},
                                                                  {"blocks.0.attn.qkv.weight", "(36, 12)"},
                                                                  {"blocks.0.attn.qkv.bias", "(36)"},
                                                                  {"blocks.0.attn.out.weight", "(12, 12)"},
                                                                  {"blocks.0.attn.out.bias", "(12)"},
                                                                  {"blocks.0.norm2.weight", "(12)"},
                                                                  {"blocks.0.norm2.bias", "(12)"},
                                                                  {"blocks.0.mlp.up.weight", "(48, 12)"},
                                                                  {"blocks.0.mlp.up.bias", "(48)"},
                                                                  {"blocks.0.mlp.down.weight", "(12, 48)"},
                                                                  {"blocks.0.mlp.down.bias", "(12)"},
                                                                  {"final_norm.weight", "(12)"},
                                                                  {"final_norm.bias", "(12)"}}));
}

TEST(Gpt, llama_shape_has_the_parameters_that_checkpoints_promise) {
  GptConfig config = llama_shape();
  config.n_layer = 1;
  Gpt model(config, 1);
  EXPECT_EQ(shapes_of(model), (std::map<std::string, std::string>{{"embed.tokens.weight", "(19, 12)"},
                                                                  {"blocks.0.norm1.weight", "(12)"},
                                                                  {"blocks.0.attn.qkv.weight", "(20, 12)"},
                                                                  {"blocks.0.attn.out.weight", "(12, 12)"},
                                                                  {"blocks.0.norm2.weight", "(12)"},
                                                                  {"blocks.0.mlp.up.weight", "(32, 12)"},
                                                                  {"blocks.0.mlp.gate.weight", "(32, 12)"},
                                                                  {"blocks.0.mlp.down.weight", "(12, 32)"},
                                                                  {"final_norm.weight", "(12)"},
                                                                  {"head.weight", "(19, 12)"}}));
}

TEST(Gpt, initial_values_have_gpt2s_deviations) {
  GptConfig config = gpt2_shape();
  config.d_model = 96;
  Gpt model(config, 3);
  for_each_parameter(model, [&](const std::string& name, Parameter& p) {
    double sum = 0, squares = 0;
    for (Real x : p.value().values()) sum += static_cast<double>(x), squares += static_cast<double>(x) * static_cast<double>(x);
    const auto n = static_cast<double>(p.value().size());
    if (p.shape().rank() == 1) {
      EXPECT_EQ(sum, name.ends_with(".weight") ? n : 0) << name;
      return;
    }
    const bool residual = name.ends_with("attn.out.weight") || name.ends_with("mlp.down.weight");
    const double expected = residual ? 0.02 / std::sqrt(4.0) : 0.02;
    EXPECT_NEAR(std::sqrt(squares / n), expected, 5 * expected / std::sqrt(2 * n)) << name;
    EXPECT_NEAR(sum / n, 0, 5 * expected / std::sqrt(n)) << name;
  });
}

TEST(Gpt, the_same_seed_gives_the_same_values_and_another_seed_others) {
  Gpt a(gpt2_shape(), 1), b(gpt2_shape(), 1), c(gpt2_shape(), 2);
  EXPECT_TRUE(test::same_bits(a.token_table().value(), b.token_table().value()));
  EXPECT_FALSE(test::same_bits(a.token_table().value(), c.token_table().value()));
}

TEST(Gpt, input_longer_than_the_position_table_is_an_error_with_both_numbers) {
  Gpt model(gpt2_shape(), 1);
  const std::string message = message_of([&] { model.logits(Ids({1, 11})); });
  EXPECT_NE(message.find("11"), std::string::npos) << message;
  EXPECT_NE(message.find("10"), std::string::npos) << message;
}

TEST(Gpt, an_id_outside_the_vocabulary_is_an_error_with_id_place_and_vocabulary) {
  Gpt model(gpt2_shape(), 1);
  Ids tokens = test::random_ids({2, 5}, 19, 1);
  tokens[7] = 19;
  EXPECT_EQ(message_of([&] { model.logits(tokens); }), "[embed.tokens] id 19 at position (1, 2) is outside [0, 19)");
  tokens[7] = -1;
  EXPECT_EQ(message_of([&] { model.logits(tokens); }), "[embed.tokens] id -1 at position (1, 2) is outside [0, 19)");
}

TEST(Gpt, only_rows_that_were_read_have_a_gradient_when_the_head_is_untied) {
  GptConfig config = gpt2_shape();
  config.tied = false;
  Gpt model(config, 1);
  const Ids tokens({1, 4}, {3, 7, 3, 11});
  backward(model.loss(tokens, Ids({1, 4}, {7, 3, 11, 2}), 0.25, {}));
  RowSparseGrad& rows = model.token_table().row_grad();
  rows.coalesce();
  EXPECT_EQ(rows.ids(), (std::vector<int32_t>{3, 7, 11}));
  RowSparseGrad& places = model.position_table().row_grad();
  places.coalesce();
  EXPECT_EQ(places.ids(), (std::vector<int32_t>{0, 1, 2, 3}));
}

TEST(Gpt, the_tied_table_is_dense_and_gets_both_gradients) {
  Gpt model(gpt2_shape(), 1);
  ASSERT_EQ(model.token_table().kind(), GradKind::kDense);
  backward(model.loss(Ids({1, 2}, {3, 7}), Ids({1, 2}, {7, 3}), 0.5, {}));
  Tensor& grad = model.token_table().grad();
  for (int64_t row = 0; row < 19; ++row) {
    double size = 0;
    for (Real x : grad.row(row)) size += std::abs(static_cast<double>(x));
    EXPECT_GT(size, 0) << "softmax gives row " << row << " a gradient";
  }
}

class Cached : public ::testing::TestWithParam<GptConfig> {};

TEST_P(Cached, logits_with_and_without_the_cache_agree) {
  Gpt model(GetParam(), 5);
  for_each_parameter(model, [](const std::string& name, Parameter& p) {  // larger than at the start, so that differences show
    if (p.shape().rank() == 2) fill_normal(p.value(), {.seed = 9, .site = site_of(name)}, 0, 0.3);
  });
  const Ids tokens = test::random_ids({1, 10}, 19, 4);
  const Tensor all = model.logits(tokens);
  Gpt::Cache cache = model.make_cache(10);
  for (int64_t first = 0, count = 4; first < 10; first += count, count = 1) {  // a prompt of four, then one by one
    const Tensor next =
        model.next_logits(Ids({1, count}, {tokens.values().begin() + first, tokens.values().begin() + first + count}), cache);
    test::expect_close(next, Tensor::from({19}, all.row(first + count - 1)), kRealIsDouble ? 1e-13 : 2e-6, "logits");
  }
  EXPECT_NE(message_of([&] { model.next_logits(Ids({1, 1}), cache); }).find("10 of 10"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Cached, ::testing::Values(gpt2_shape(), llama_shape()),
                         [](const auto& test) { return test.index == 0 ? "gpt2" : "llama"; });

TEST(Gpt, dropout_acts_in_training_only_and_repeats_for_the_same_pass) {
  GptConfig config = llama_shape();
  Gpt model(config, 1);
  const Ids tokens = test::random_ids({2, 6}, 19, 2);
  const auto hidden = [&](bool training, uint64_t step) {
    return model.hidden(tokens, {.training = training, .dropout = 0.5, .key = {.seed = 1, .step = step}}).value();
  };
  EXPECT_TRUE(test::same_bits(hidden(false, 1), hidden(false, 2)));
  EXPECT_TRUE(test::same_bits(hidden(true, 1), hidden(true, 1)));
  EXPECT_FALSE(test::same_bits(hidden(true, 1), hidden(true, 2)));
  EXPECT_FALSE(test::same_bits(hidden(true, 1), hidden(false, 1)));
}

TEST(Gpt, gradients_have_the_same_bits_for_any_number_of_threads) {
  const auto gradients = [](int count) {
    const Threads threads(count);
    Gpt model(gpt2_shape(), 1);
    const Ids tokens = test::random_ids({5, 10}, 19, 2);
    backward(model.loss(tokens, test::random_ids({5, 10}, 19, 3), 1.0 / 50, {.training = true, .dropout = 0.1}));
    std::vector<Tensor> out;
    for_each_parameter(model, [&](const std::string&, Parameter& p) {
      if (p.kind() == GradKind::kDense) out.push_back(p.grad().clone());
    });
    return out;
  };
  const std::vector<Tensor> one = gradients(1);
  for (int count : {2, 4}) {
    const std::vector<Tensor> many = gradients(count);
    for (size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(test::same_bits(one[i], many[i])) << count << " threads, parameter " << i;
  }
}

}  // namespace
}  // namespace rowan
