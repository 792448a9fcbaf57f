// LossGuard: remembers the losses of the last steps, says which new one is a spike, and counts what was done about losses that
// went wrong. All of it is state of the run: a resumed run judges as one that never stopped.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/visit.h"

namespace rowan {

class LossGuard {
 public:
  static constexpr int64_t kMostSkips = 10;   // without an update between them
  static constexpr int64_t kMostRewinds = 3;  // without getting past the step that failed

  struct Counts {
    int64_t skips = 0;        // since the last update
    int64_t rewinds = 0;      // since the run got past failed_step
    int64_t failed_step = 0;  // the furthest step that was rewound from
    bool operator==(const Counts&) const = default;
  };

  LossGuard(int64_t window, double z) : window_(window), z_(z) {}

  // "" or what makes this loss a spike: it is more than z standard deviations above the mean of the last `window` accepted ones.
  // Nothing is a spike before there are that many.
  std::string judge(double loss) const;
  void accept(double loss);  // of a step that was made

  // False: once too often.
  bool count_skip() { return ++counts_.skips <= kMostSkips; }
  bool count_rewind(int64_t failed_step);

  const Counts& counts() const { return counts_; }
  void set_counts(const Counts& counts) { counts_ = counts; }
  bool is_new() const { return losses_.empty() && counts_ == Counts{}; }
  void reset();
  void visit_state(StateVisitor& v);

 private:
  int64_t window_;
  double z_;
  std::vector<double> losses_;  // oldest first, at most window_
  Counts counts_;
};

}  // namespace rowan
