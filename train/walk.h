// What the embedding step does to one input, as text for a newcomer: the ids, the rows looked up in both tables, their sum, the
// logits that come out at the end, with shapes, and the text that follows when the most likely token is taken again and again.
#pragma once

#include <string>

#include "train/session.h"

namespace rowan {

std::string walk_text(const LoadedModel& loaded, const std::string& input);

}  // namespace rowan
