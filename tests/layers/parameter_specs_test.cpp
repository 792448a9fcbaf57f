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

}  // namespace
}  // namespace rowan
