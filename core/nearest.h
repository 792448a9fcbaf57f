// The known name that is closest to a misspelt one, for "did you mean" hints.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace rowan {

// Damerau-Levenshtein distance (optimal string alignment): insertions, deletions, replacements and swaps of neighbours, in bytes.
inline size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      now[j] = std::min(std::min(last[j], now[j - 1]) + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) now[j] = std::min(now[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, now);
  }
  return last[b.size()];
}

// "" when nothing is close: more than a third of the letters would have to change (one change is always close, except that a
// name of one letter has no near one). Of several equally near names the first wins. What is absurdly long has no near name.
inline std::string nearest_name(std::string_view name, const std::vector<std::string>& known) {
  constexpr size_t kLongest = 200;  // the distance costs the product of both lengths
  std::string best;
  size_t best_distance = std::max<size_t>(1, name.size() / 3) + 1;
  if (name.size() < 2 || name.size() > kLongest) return best;
  for (const std::string& candidate : known) {
    const size_t longer = std::max(name.size(), candidate.size()), shorter = std::min(name.size(), candidate.size());
    if (candidate.size() > kLongest || longer - shorter >= best_distance) continue;  // each letter more is a change
    const size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace rowan
