// Schedule: the learning rate as a pure function of the step, so there is nothing to save and nothing to lose.
//
// Every group's own lr is multiplied by factor(step). With w = warmup, r = min_ratio, and steps counted from 1:
//   step <= w               step / w                                  (linear warm-up; the first step is not 0)
//   constant                1
//   cosine                  r + (1 - r) * (1 + cos(pi * p)) / 2       p = (step - w) / (end - w), 1 after end
//   linear                  r + (1 - r) * (1 - p)
//   wsd                     1 until end - decay_steps, then linear from 1 to r over decay_steps (warm-up, stable, decay)
// where end = decay_steps for cosine and linear (0: the run's steps), the run's steps for wsd (there decay_steps 0: a tenth of
// them). A warm-up that reaches past the end of the decay leaves r after it. Cosine: Loshchilov and Hutter, "SGDR", ICLR 2017. WSD:
// Hu et al., "MiniCPM", 2024.
#pragma once

#include <cstdint>
#include <string>

#include "core/visit.h"

namespace rowan {

struct Schedule {
  std::string kind = "cosine";
  int64_t warmup = 0;
  double min_ratio = 0.1;
  int64_t decay_steps = 0;  // cosine, linear: the step at which min_ratio is reached (0: train.steps); wsd: length of the decay

  void visit(FieldVisitor& v) {
    v("kind", kind, "how the learning rate moves", one_of({"cosine", "linear", "constant", "wsd"}));
    v("warmup", warmup, "steps of linear warm-up", at_least(0));
    v("min_ratio", min_ratio, "lowest learning rate as a share of the highest", between(0, 1));
    v("decay_steps", decay_steps,
      "cosine, linear: step that reaches min_ratio (0: train.steps); wsd: length of the final decay (0: a tenth)", at_least(0));
  }

  double factor(int64_t step, int64_t total_steps) const;  // step from 1
};

}  // namespace rowan
