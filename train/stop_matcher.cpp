#include "train/stop_matcher.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace rowan {

StopMatcher::StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {
  for (const std::string& stop : stops_)
    ROWAN_CHECK(!stop.empty(), "[sampler] a stop string is empty: nothing would ever be shown");
}

std::string StopMatcher::push(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size() && !stopped_; ++i) {
    held_ += text[i];
    size_t complete = 0, begun = 0;  // longest stop string, and longest beginning of one, that held_ ends with
    for (const std::string& stop : stops_) {
      if (held_.ends_with(stop)) complete = std::max(complete, stop.size());
      for (size_t n = std::min(stop.size() - 1, held_.size()); n > begun; --n)
        if (std::string_view(held_).substr(held_.size() - n) == std::string_view(stop).substr(0, n)) begun = n;
    }
    stopped_ = complete > 0;
    const size_t shown = held_.size() - (stopped_ ? complete : begun);
    out.append(held_, 0, shown);
    held_.erase(0, shown);
  }
  if (stopped_) held_.clear();
  return out;
}

std::string StopMatcher::finish() {
  return std::exchange(held_, {});
}

}  // namespace rowan
