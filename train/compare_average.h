// Means over the runs of one point: what a table shows of an arm. Internal to train/compare_*.cpp.
#pragma once

#include <map>
#include <vector>

#include "train/compare_run.h"

namespace rowan {

// Runs must not have diverged. Buckets are weighted by their tokens, rows and touches; curves are means of the steps that all have.
struct AverageRun {
  double loss = 0, divergence = 0, lowest_loss = 0;
  bool truth_known = false;
  double state_bytes_per_row = 0, bytes_per_step = 0, touched_rows = 0, step_ms = 0, update_ms = 0;
  std::map<int, BucketLoss> by_input, by_target;
  std::map<int, BucketRows> rows;
  std::map<int, BucketTouches> touches;
  std::vector<CurvePoint> curve;
};

AverageRun average(const std::vector<RunResult>& runs);

}  // namespace rowan
