// TouchLog: what updates do to rows of the token table, by how often training reads the row (train/frequency.h).
//
// At every `interval`-th step and at the last one it compares the rows that the step's batches read before and after the update,
// and makes a line for metrics.jsonl of it, so that a run that was killed and resumed has each step once:
//
//   {"event":"touch","step":20,"lr":0.001,"bytes":..,"seconds":..,"by_count":{"3":{"touches":7,"moved":5.2},...}}
//
// moved: the sum over the bucket's touches of |dw| / lr, with the rule's learning rate in that step. bytes and seconds: of the
// table's update. A row that lags behind (untouched = exact) is compared as it stands when it is read, after it has caught up.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "train/frequency.h"
#include "train/session.h"

namespace rowan {

class TouchLog final : public UpdateObserver {
 public:
  TouchLog(TrainSession& session, const TokenCounts& counts, int64_t interval);

  void before_update(int64_t step, const std::vector<Batch>& batches) override;
  void after_update(int64_t step, double lr_factor) override;
  // The line of this step, once; "" when it is none of them.
  std::string take_line(int64_t step);

 private:
  TrainSession& session_;
  const TokenCounts& counts_;
  bool logs(int64_t step) const;

  int64_t interval_;
  std::vector<int32_t> ids_;  // read in this step, increasing
  std::vector<Real> before_;  // (ids, D)
  int64_t line_step_ = 0;
  std::string line_;
};

}  // namespace rowan
