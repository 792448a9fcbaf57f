// CheckpointSaver: publishes checkpoints of a run, at once or while training goes on.
//
// Training stops for the image alone, which is a copy of the state; in the background a thread writes it. One checkpoint is in
// flight at most, so no more than one image is held, and a failure comes out where the next one is asked for.
#pragma once

#include <functional>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "train/run_dir.h"

namespace rowan {

struct SavedCheckpoint {
  int64_t step = 0;
  std::string path;
  int64_t bytes = 0;
  double seconds = 0;                 // from the call of start() until it stood
  std::vector<std::string> problems;  // old checkpoints that could not be removed
};

class CheckpointSaver {
 public:
  CheckpointSaver(RunDir& run, bool background) : run_(run), background_(background) {}
  ~CheckpointSaver();  // waits
  CheckpointSaver(const CheckpointSaver&) = delete;
  CheckpointSaver& operator=(const CheckpointSaver&) = delete;

  // Publishes the image, makes best.h5 of it when asked, and removes all but the newest keep_last and that of step `keep_also`.
  // collect() must have returned what came before. In the foreground all is done on return, and its failure waits for collect() all
  // the same.
  void start(CheckpointImage image, bool best, int64_t keep_last, int64_t keep_also);

  // What start() came to: nothing while it is still being written, unless `wait`. Throws the Error that it ended with.
  std::optional<SavedCheckpoint> collect(bool wait);
  bool in_flight() const { return pending_.valid(); }

 private:
  bool start_thread(const std::function<void()>& work);

  RunDir& run_;  // the thread's own while one is in flight
  bool background_;
  std::future<SavedCheckpoint> pending_;
  std::thread thread_;
};

}  // namespace rowan
