#include "train/step_cost.h"

#include "core/ops/head_cross_entropy.h"
#include "layers/parameter_specs.h"

namespace rowan {
namespace {

// y (n,out) = x (n,in) W (out,in)^T, and what its backward multiplies.
void add_linear(const std::string& layer, int64_t n, int64_t out, int64_t in, int64_t count, std::vector<StepProduct>& products) {
  products.push_back({layer, "forward", Op::kNone, Op::kTranspose, n, out, in, count});
  products.push_back({layer, "dx", Op::kNone, Op::kNone, n, in, out, count});
  products.push_back({layer, "dw", Op::kTranspose, Op::kNone, out, in, n, count});
}

}  // namespace

std::vector<StepProduct> step_products(const StepShape& shape) {
  const GptConfig& c = shape.model;
  const int64_t n = shape.tokens(), d = c.d_model, heads = c.n_head * c.head_dim(), kv = c.kv_heads() * c.head_dim();
  std::vector<StepProduct> products;
  if (c.n_layer > 0) {
    add_linear("attn.qkv", n, heads + 2 * kv, d, c.n_layer, products);
    add_linear("attn.out", n, d, heads, c.n_layer, products);
    add_linear("mlp.up", n, c.ff_width(), d, (c.mlp == "swiglu" ? 2 : 1) * c.n_layer, products);
    add_linear("mlp.down", n, d, c.ff_width(), c.n_layer, products);
  }
  const int64_t chunk = detail::head_chunk(n, c.vocab_size);
  add_linear("head", chunk, c.vocab_size, d, (n + chunk - 1) / chunk, products);
  return products;
}

int64_t parameter_count(const GptConfig& model) {
  int64_t count = 0;
  for (const ParameterSpec& spec : parameter_specs(model)) count += spec.shape.size();
  return count;
}

double counted_flops_per_token(const GptConfig& model, int64_t seq_len) {
  return 6.0 * static_cast<double>(parameter_count(model)) +
         12.0 * static_cast<double>(model.n_layer) * static_cast<double>(model.d_model) * static_cast<double>(seq_len);
}

}  // namespace rowan
