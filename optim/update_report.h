// UpdateReport: what the last update of a parameter did, for logs.
#pragma once

#include <cstdint>

namespace rowan {

struct UpdateReport {
  int64_t rows = 0;         // V; 1 for a vector
  int64_t touched = 0;      // rows with a gradient (U)
  int64_t updated = 0;      // rows written: U, or V where the table was swept
  int64_t longest_run = 0;  // most occurrences of one id; 0 when the gradient was dense
  int64_t caught_up = 0;    // missed steps made up, over all rows, since the update before
  int64_t bytes = 0;        // moved to and from memory: gradients read, weights and state read and written, to catch up as well
  double seconds = 0;       // of the update, the joining of repeated ids included, and of catching up since the one before

  double touched_share() const { return rows == 0 ? 0 : static_cast<double>(touched) / static_cast<double>(rows); }  // U/V
  double gb_per_s() const { return seconds > 0 ? static_cast<double>(bytes) / seconds * 1e-9 : 0; }
};

}  // namespace rowan
