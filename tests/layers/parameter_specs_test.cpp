#include "layers/parameter_specs.h"

#include <gmock/gmock.h>

#include "layers/gpt.h"

namespace rowan {
namespace {

std::vector<GptConfig> many_configs() {
  std::vector<GptConfig> all;
  for (const char* positions : {"learned", "rope", "none"})
    for (const char* norm : {"layernorm", "rmsnorm"})
      for (const char* mlp : {"gelu_tanh", "gelu", "swiglu"})
        for (const bool bias : {false, true})
          for (const bool tied : {false, true})
            for (const int64_t layers : {0, 2}) {
              GptConfig c;
              c.d_model = 24, c.n_layer = layers, c.n_head = 6, c.vocab_size = 11, c.max_seq_len = 5;
              c.n_kv_head = layers == 2 ? 2 : 0;
              c.d_ff = bias ? 0 : 7;
              c.positions = positions, c.norm = norm, c.mlp = mlp, c.bias = bias, c.tied = tied;
              c.resolve();
              all.push_back(c);
            }
  return all;
}

TEST(ParameterSpecs, are_the_parameters_of_the_model_in_its_order) {
  for (const GptConfig& c : many_configs()) {
    SCOPED_TRACE(
        join_text(c.positions, ", ", c.norm, ", ", c.mlp, ", bias ", c.bias, ", tied ", c.tied, ", ", c.n_layer, " layers"));
    Gpt model(c, 1);
    const std::vector<ParameterSpec> specs = parameter_specs(c);
    size_t i = 0;
    for_each_parameter(model, [&](const std::string& name, Parameter& p) {
      ASSERT_LT(i, specs.size()) << name;
      EXPECT_EQ(specs[i].name, name);
      EXPECT_EQ(specs[i].shape, p.shape()) << name;
      EXPECT_EQ(specs[i].kind, p.kind()) << name;
      ++i;
    });
    EXPECT_EQ(i, specs.size());
  }
}

// Kinds of gradients by what trains the head. A head that shares the table's weights is the last, and not among those of visit().
TEST(ParameterSpecs, follow_how_the_heads_gradients_are_kept) {
  for (const HeadGrads head : {HeadGrads::kRowSparse, HeadGrads::kTwoSource}) {
    GptConfig c;
    c.vocab_size = 7;
    c.tied = head == HeadGrads::kTwoSource;
    c.resolve();
    Gpt model(c, 1, head);
    const std::vector<ParameterSpec> specs = parameter_specs(c, head);
    size_t i = 0;
    for_each_parameter(model, [&](const std::string& name, Parameter& p) {
      EXPECT_EQ(specs.at(i).name, name);
      EXPECT_EQ(specs.at(i).kind, p.kind()) << name;
      EXPECT_FALSE(specs.at(i).shared) << name;
      ++i;
    });
    EXPECT_EQ(specs.front().kind, GradKind::kRowSparse);
    EXPECT_EQ(specs.back().name, "head.weight");
    EXPECT_EQ(specs.back().shared, c.tied);
    EXPECT_EQ(specs.back().kind, c.tied ? GradKind::kDense : GradKind::kRowSparse);
    EXPECT_EQ(specs.size(), i + (c.tied ? 1 : 0));
    c.tied = !c.tied;
    EXPECT_THROW(Gpt(c, 1, head), Error);
  }
}

}  // namespace
}  // namespace rowan
