// One run of a comparison: an ordinary run directory, trained or gone on with, and what is measured of it at the end.
//
// <directory>/compare.json holds the measurements and says that the run is done. Everything in it is a function of config and data,
// but for the members named "time".
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "train/config.h"
#include "train/frequency.h"

namespace rowan {

struct CurvePoint {
  int64_t step = 0;
  double loss = 0;  // of the validation split, as far as train.eval_tokens goes
};

struct BucketTouches {
  int64_t touches = 0;  // in the steps that were looked at
  double moved = 0;     // |dw| / lr a touch, mean

  template <class Bucket, class Visitor>
  static void visit(Bucket& b, const Visitor& v) {
    v(b.touches, b.moved);
  }
};

struct RunResult {
  // What runs of one seed must have in common.
  std::string weights_digest;  // of the initial weights
  std::string data_digest;     // of every input and target in their order
  // Of the content of data.train and data.val: what all runs must have in common, where no field of [data] gets the seed.
  std::string train_fingerprint, val_fingerprint;

  bool diverged = false;  // a loss or gradient was not finite: nothing below is measured
  std::string why;
  int64_t parameters = 0;
  FrequencyLoss validation;
  std::map<int, BucketRows> rows;        // of the token table, by its tokens' counts as inputs
  std::map<int, BucketTouches> touches;  // the same rows
  std::vector<CurvePoint> curve;         // every evaluation
  // Of the token table.
  double state_bytes_per_row = 0;
  double bytes_per_step = 0;  // moved by its update, mean; 0 where the rule does not tell
  double touched_rows = 0;    // a step, mean
  double step_ms = 0;         // median; of whole training steps
  double update_ms = 0;       // median; of the table's update
};

struct RunRequest {
  Config config;
  std::string directory;
  // Called before the first step with what the run starts from; throws when that is not to be trained on.
  std::function<void(const RunResult&)> check_start = {};
};

struct RunOutcome {
  RunResult result;
  int signal = 0;  // not 0: a signal ended it early, with a checkpoint saved; no result
  bool done_before = false;
};

// Trains on the calling thread's Threads, unless the run is done already. Errors: a directory that holds a run with other settings
// (named one by one), no validation split, a run that train.max_minutes ended, and all that training can throw.
RunOutcome run_or_resume(const RunRequest& request);

// The result of a run that is done; Error (kData) when compare.json can't be read as one.
RunResult load_run_result(const std::string& directory);
bool run_is_done(const std::string& directory);

}  // namespace rowan
