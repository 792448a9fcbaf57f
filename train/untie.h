// Untying a head in the middle of a run (train.untie_at): a tied model and its optimizers become an untied model and optimizers
// that go on from the same numbers.
//
// head.weight begins as a copy of embed.tokens.weight, with a copy of its moments and its counter. Where the softmax's gradient had
// state of its own (train.tied_two_source), head.weight keeps that. Rows of the table are updated by rows from then on; where they
// may lag behind (untouched = exact), all of them begin up to date.
#pragma once

#include "layers/gpt.h"
#include "optim/groups.h"

namespace rowan {

// Every parameter of `to` becomes that of `from`; the head, when only `to` has one, a copy of the table.
void move_weights(Gpt& from, Gpt& to);

// The state of every parameter of `to` becomes that of `from`, whose rows must not lag behind. Both have the same groups.
void copy_optimizer_state(OptimizerSet& from, OptimizerSet& to);

}  // namespace rowan
