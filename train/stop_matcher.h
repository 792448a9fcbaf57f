// StopMatcher: ends a streamed text at a stop string, of which no part is ever shown. Text that may turn out to be the beginning
// of a stop string is held back until that is decided. The result does not depend on how the text is cut into pieces: the stop
// string that is complete first ends the text, the longest of those that end at the same byte.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rowan {

class StopMatcher {
 public:
  explicit StopMatcher(std::vector<std::string> stops);  // Error for an empty one

  std::string push(std::string_view text);  // what can be shown now; nothing once stopped()
  std::string finish();                     // the text ended by itself: what was held back
  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace rowan
