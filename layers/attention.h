// SelfAttention: causal, with grouped key/value heads; one projection makes q, k and v, RoPE is applied inside the fused op.
#pragma once

#include <optional>

#include "core/ops/attention.h"
#include "layers/linear.h"
#include "layers/rope.h"

namespace rowan {

struct SelfAttention final : Module {
  Linear qkv;  // D -> (H+2K)*hd; rows: all q heads, all k, all v
  Linear out;  // H*hd -> D
  AttentionShape heads;
  std::optional<Rope> rope;

  explicit SelfAttention(const GptConfig& c)
      : qkv(c.d_model, (c.n_head + 2 * c.kv_heads()) * c.head_dim(), c.bias),
        out(c.n_head * c.head_dim(), c.d_model, c.bias),
        heads{.heads = c.n_head, .kv_heads = c.kv_heads(), .head_dim = c.head_dim()},
        rope(make_rope(c)) {}

  void visit(ParamVisitor& v) override {
    v("qkv", qkv);
    v("out", out);
  }

  Variable forward(const Variable& x, double dropout, const RandomKey& key) const {  // (B,T,D) -> (B,T,D)
    // The bias enters qkv as a constant: attention computes its gradient.
    const Variable bias = qkv.bias.present() ? Variable(qkv.bias.value()) : Variable();
    return out.forward(attention(linear(x, qkv.weight.var, bias), heads, rope ? &*rope : nullptr, dropout, key, qkv.bias.var));
  }

  // New tokens after those in the cache. (1,t,D) -> (1,t,D)
  Variable decode(const Variable& x, KvCache& cache) const {
    return out.forward(Variable(attention_decode(qkv.forward(x).value(), cache, heads, rope ? &*rope : nullptr)));
  }
};

}  // namespace rowan
