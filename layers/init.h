// Initial values, drawn per parameter from (seed, name): adding a layer does not change the numbers of another one.
#pragma once

#include <string>

#include "layers/module.h"

namespace rowan {

// Normal with the given deviation, as GPT-2: Radford et al., "Language models are unsupervised multitask learners", 2019,
// section 2.3.
inline void init_normal(Parameter& p, uint64_t seed, const std::string& name, double deviation) {
  fill_normal(p.value(), {.seed = seed, .purpose = Purpose::kInit, .site = site_of(name)}, 0, deviation);
}

}  // namespace rowan
