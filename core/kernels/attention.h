// Causal attention over packed heads, forward and backward, without ever holding a (T,T) matrix.
//
//   qkv (B,T,(H+2K)*hd): for every position all H query heads, then K key heads, then K value heads; query head h reads key/value
//   head h / (H/K).  Row i of head h:  out_i = sum_{j<=i} p_ij v_j,  p_i = softmax over j <= i of scale * q_i . k_j
//
// With a rotary embedding, q and k are rotated first. With dropout, every p_ij is set to 0 with probability p and multiplied by
// 1/(1-p) otherwise, after the softmax.
//
// Queries and keys are worked on in tiles; a softmax that is corrected from tile to tile keeps one maximum and one sum a row, and
// tiles above the diagonal are skipped. What the backward needs beside qkv and the output is one log-sum-exp per row: it computes
// the probabilities again, tile by tile. Dao, Fu, Ermon, Rudra, Re, "FlashAttention", 2022, algorithms 1 and 4.
//
// Work is cut into pieces by shapes only; results have the same bits for any number of threads.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/kernels/kv_cache.h"
#include "core/kernels/rope.h"
#include "core/rng.h"
#include "core/tensor.h"

namespace rowan {

// Dropout of probabilities. The mask is a function of (key, b, h, i, j) and T alone: the backward makes it again.
struct AttentionDropout {
  double p = 0;  // in [0, 1)
  RandomKey key;
};

// The attention of qkv (B,T,(H+2K)*hd), T >= 1, over itself: (B,T,H*hd). `rope` is null or a table that starts at position 0.
// log_sum, when not null, becomes (B,H,T): log of the sum over keys of e^score.
Tensor attention_forward(const Tensor& qkv, const AttentionShape& shape, const RopeTable* rope, const AttentionDropout& dropout,
                         Tensor* log_sum);

// Appends the keys and values of qkv (B,t,(H+2K)*hd), t >= 1, to the cache and returns the attention of the new positions over all
// that the cache then holds: (B,t,H*hd). `rope` is null or a table that starts at position cache.length().
Tensor attention_with_cache(const Tensor& qkv, KvCache& cache, const AttentionShape& shape, const RopeTable* rope);

struct AttentionSaved {
  Tensor qkv, out, log_sum;
};

// dqkv (B,T,(H+2K)*hd) = or +=, by `add`, the gradient for dy (B,T,H*hd) of attention_forward.
void attention_backward(const AttentionSaved& saved, const Tensor& dy, const AttentionShape& shape, const RopeTable* rope,
                        const AttentionDropout& dropout, Tensor& dqkv, bool add);

}  // namespace rowan
