#include "train/step_cost.h"

#include <algorithm>

#include "core/ops/head_cross_entropy.h"
#include "train/config.h"

namespace rowan {
namespace {

// y (n,out) = x (n,in) W (out,in)^T, and what its backward multiplies.
void add_linear(const std::string& layer, int64_t n, int64_t out, int64_t in, int64_t count, std::vector<StepProduct>& products) {
  products.push_back({layer, "forward", Op::kNone, Op::kTranspose, n, out, in, count});
  products.push_back({layer, "dx", Op::kNone, Op::kNone, n, in, out, count});
  products.push_back({layer, "dw", Op::kTranspose, Op::kNone, out, in, n, count});
}

}  // namespace

StepShape step_shape(const Config& config) {
  return {.model = model_at(config, config.train.steps),
          .batch = config.data.batch_size,
          .seq_len = config.data.seq_len,
          .negatives = config.train.loss == "sampled" ? config.train.sampled.negatives : 0};
}

int64_t most_rows_read(const Config& config, const ParameterSpec& spec, int64_t micro_batches) {
  const StepShape shape = step_shape(config);
  int64_t read = shape.seq_len;  // of the position table, the same ones in every micro-batch
  if (spec.name == "embed.tokens.weight") read = shape.tokens() * micro_batches;
  if (spec.name == "head.weight") read = (shape.tokens() + shape.negatives) * micro_batches;
  return std::min(read, spec.shape[0]);
}

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
  const int64_t classes = shape.negatives > 0 ? shape.negatives : c.vocab_size;
  const int64_t chunk = detail::head_chunk(n, shape.negatives > 0 ? classes + 1 : classes);
  add_linear("head", chunk, classes, d, (n + chunk - 1) / chunk, products);
  return products;
}

int64_t parameter_count(const GptConfig& model) {
  int64_t count = 0;
  for (const ParameterSpec& spec : parameter_specs(model)) count += spec.shape.size();
  return count;
}

double counted_flops_per_token(const GptConfig& model, int64_t seq_len, int64_t negatives) {
  const int64_t v = model.vocab_size, head = v - std::min(v, negatives + 1), table = v - 1;
  const int64_t rows_left_out = negatives > 0 ? head + table : 0;
  return 6.0 * static_cast<double>(parameter_count(model) - rows_left_out * model.d_model) +
         12.0 * static_cast<double>(model.n_layer) * static_cast<double>(model.d_model) * static_cast<double>(seq_len);
}

}  // namespace rowan
