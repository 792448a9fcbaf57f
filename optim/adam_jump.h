// adam_jump: many steps of Adam with a gradient of zero, at once, for one row.
//
// Without gradients the moments are known: after s steps m = b1^s m0 and v = b2^s v0. The weight moves by
//     sum over s of  D(s+1, k) * step_size_s * m_s / (sqrt(v_s + inside_s) root_factor_s + outside_s),
// with D(s+1, k) the product of the decay factors still to come. Terms fall like r^s with r = b1 / sqrt(b2), for r < 1, because
//     |m_s| / (sqrt(v_s) ...) <= |m0| / sqrt(v0) * r^s     (eps only makes a term smaller),
// so the sum is followed, in double, until what is left of it is under u * lr, where u is half the distance from 1 to the next Real
// and lr the largest of the missed steps' learning rates. The rest of the gap, however long, is the product of decays and two
// powers.
//
// Error against the same steps in exact arithmetic, with the same rounded settings: at most u * (|w| + 2 lr) per element, and u
// times its own size for each moment. Where Real is double, double is no wider than Real, and each of the k missed steps adds up to
// u * (1 + L) * |w|, through the tail or the sum of the decay factors' logarithms, which has grown to -L since the history began.
// (Steps that are really taken in Real round in each: up to u |w| a step with decay, which is what a dense table loses, not this.)
// A jump costs at most kLongestTail steps, whatever the gap; with betas whose tail is longer (.99 and .99, say) every missed step
// is replayed, and a row costs what its gap is long.
//
// False, with nothing changed, where that does not hold: r >= 1, a moment without its square, or a tail that has not fallen in
// time.
#pragma once

#include "optim/row_block.h"

namespace rowan {

inline constexpr int64_t kLongestTail = 4096;

// beta1 and beta2 as a step in Real applies them: 1 - Real(1 - beta1), Real(beta2). Scalars c[0..3] of the missed steps are
// adam_rule.cpp's step_size, inside, root_factor, outside.
bool adam_jump(const RowJump& row, double beta1, double beta2);

}  // namespace rowan
