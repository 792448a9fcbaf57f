// attention: causal self-attention with grouped key/value heads, rotary embedding and dropout inside. core/kernels/attention.h has
// the formulas and says how it is computed; memory grows with T, time with T^2/2.
//
//   qkv (B,T,(H+2K)*hd) -> (B,T,H*hd)
//
// rope: null, or how q and k are rotated; positions count from 0. dropout: the probability of dropping an attention weight, 0
// outside training. The mask depends on nothing but (key, b, h, i, j) and T.
// qkv_bias: the bias ((H+2K)*hd) that is already in qkv, when there is one to train. Its gradient is computed here, where that of
// the keys is known to be 0 or next to it (core/kernels/attention_bias.h); whoever added it must add it as a constant.
// Errors: sizes that do not fit each other, T = 0, dropout outside [0, 1). Numbers that are not finite are not reported: they
// reach the rows that see them. Not here: other masks than the causal one, padding, sliding windows, cross-attention.
#pragma once

#include <optional>

#include "core/kernels/attention.h"
#include "core/kernels/attention_bias.h"
#include "core/variable.h"

namespace rowan {

// Throws unless the sizes are positive, kv_heads divides heads, and qkv is (B,T,(H+2K)*hd) with at least one position.
inline void check_attention(const Tensor& qkv, const AttentionShape& s, const Rope* rope) {
  ROWAN_CHECK(s.heads > 0 && s.kv_heads > 0 && s.head_dim > 0 && s.heads % s.kv_heads == 0, "[attention] ", s.kv_heads,
              " key/value heads must divide ", s.heads, " heads, all positive, of width ", s.head_dim);
  ROWAN_CHECK(std::isfinite(s.scale), "[attention] scale ", s.scale, " is not a finite number");
  ROWAN_CHECK(qkv.shape().rank() == 3 && qkv.shape().back() == s.qkv_width(), "[attention] qkv is ", qkv.shape(), " but (B, T, ",
              s.qkv_width(), ") is expected for ", s.heads, " query and ", s.kv_heads, " key/value heads of width ", s.head_dim);
  ROWAN_CHECK(qkv.shape()[1] > 0, "[attention] qkv has no positions: ", qkv.shape());
  if (rope != nullptr) check_rope(*rope, s.head_dim);
}

inline Variable attention(const Variable& qkv, const AttentionShape& shape, const Rope* rope = nullptr, double dropout = 0,
                          const RandomKey& key = {}, const Variable& qkv_bias = {}) {
  check_attention(qkv.value(), shape, rope);
  ROWAN_CHECK(qkv_bias.empty() || qkv_bias.shape() == Shape{shape.qkv_width()}, "[attention] the bias is ", qkv_bias.shape(),
              " but (", shape.qkv_width(), ") is expected");
  ROWAN_CHECK(dropout >= 0 && dropout < 1, "[attention] dropout ", dropout, " is outside [0, 1)");
  std::optional<RopeTable> table;
  if (rope != nullptr) table.emplace(*rope, 0, qkv.shape()[1]);
  const AttentionDropout drop{dropout, key};
  AttentionSaved saved{qkv.value(), {}, {}};
  saved.out = attention_forward(qkv.value(), shape, table ? &*table : nullptr, drop, &saved.log_sum);
  return record("attention", saved.out, {qkv, qkv_bias}, [saved, shape, table, drop](const Tensor& dy, InputGrads& in) {
    const RopeTable* turns = table ? &*table : nullptr;
    if (!in.wants(1)) {
      const InputGrads::Target dqkv = in.target(0);
      attention_backward(saved, dy, shape, turns, drop, dqkv.tensor, !dqkv.fresh);
      return;
    }
    Tensor dqkv(saved.qkv.shape());
    attention_backward(saved, dy, shape, turns, drop, dqkv, false);
    attention_bias_backward(saved, dy, shape, turns, drop, dqkv, in.dense(1));
    if (in.wants(0)) in.add(0, dqkv);
  });
}

// The attention of new positions qkv (B,t,(H+2K)*hd) over those in the cache and themselves: (B,t,H*hd). Appends them to the
// cache. The same kernels as attention(), so cached and uncached results have the same bits. No tape, no dropout.
// Throws when they do not fit; the cache is then as before.
inline Tensor attention_decode(const Tensor& qkv, KvCache& cache, const AttentionShape& shape, const Rope* rope = nullptr) {
  check_attention(qkv, shape, rope);
  std::optional<RopeTable> table;
  if (rope != nullptr) table.emplace(*rope, cache.length(), qkv.shape()[1]);
  return attention_with_cache(qkv, cache, shape, table ? &*table : nullptr);
}

}  // namespace rowan
