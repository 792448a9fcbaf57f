// The gradient of the bias that was added to qkv before attention.
//
// It is the sum of dqkv over all positions, and for queries and values it is computed so. For keys that sum would be wrong in
// floats: a constant added to every key of a sequence changes all scores of a row alike, softmax does not see it, and the terms
// cancel. Without a rotary embedding the key bias's gradient is exactly 0; what floats leave of it is noise, and an optimizer that
// divides by the gradient's size (Adam) would make full steps of it. With one, only the rotation between positions keeps the
// terms from cancelling; for pairs that turn slowly next to nothing remains. So the key part is
//   without RoPE          0
//   with, T <= kExact     computed again in double from q, k, v and dy: sums of terms whose cancellation is then exact enough
//   with, longer          the sum of dqkv: the terms are many and turn far enough
#pragma once

#include "core/kernels/attention.h"

namespace rowan {

inline constexpr int64_t kExactKeyBias = 64;  // positions up to which it costs less than the products around it

// dbias (H+2K)*hd += the gradient. dqkv (B,T,(H+2K)*hd) is attention_backward's result alone, nothing else added to it.
void attention_bias_backward(const AttentionSaved& saved, const Tensor& dy, const AttentionShape& shape, const RopeTable* rope,
                             const AttentionDropout& dropout, const Tensor& dqkv, Tensor& dbias);

}  // namespace rowan
