// RunDir: the directory of one run.
//
//   config.toml (resolved)  metrics.jsonl  tokenizer.*  checkpoints/step-<10 digits>.h5  best.h5  run.lock (while it is written to)
//
// The latest checkpoint is the highest step that verifies: there is no pointer file to go stale.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "train/checkpoint.h"
#include "train/run_lock.h"

namespace rowan {

struct SkippedCheckpoint {
  std::string path;
  std::string reason;
};
struct FoundCheckpoint {
  Checkpoint checkpoint;
  std::vector<SkippedCheckpoint> skipped;  // newer ones that do not verify, newest first
};

// For CKPT|DIR arguments: the file itself, or the latest checkpoint of a run. Read only, no lock. Errors (kData): no such path, no
// checkpoint yet, none that verifies (every reason is given). strict: the newest one must verify.
FoundCheckpoint find_checkpoint(const std::string& path, bool strict = false, FileSystem& files = system_files());

// Whether Rowan made this directory for a run: it has a folder `checkpoints`, and with it a checkpoint, a config.toml that a run
// wrote, or nothing else at all (a run that was killed as it began).
bool is_run(const std::string& directory, FileSystem& files = system_files());

// The steps that `directory`/checkpoints has files for, ascending; nothing is said about their content.
std::vector<int64_t> checkpoint_steps(const std::string& directory, FileSystem& files = system_files());
bool has_checkpoint(const std::string& directory, int64_t step, FileSystem& files = system_files());  // the same of one
std::string checkpoint_file_name(int64_t step);                                                       // "step-0000000100.h5"
void check_step(const Checkpoint& checkpoint, int64_t step);  // throws when it holds another step than its file's name says

// For the one process that writes to the run. Not for use by two threads at once.
class RunDir {
 public:
  // A new run. A run's directory is refused (Error, kUsage) unless `overwrite`, which removes what Rowan made there and nothing
  // else. A directory with other things in it is refused always.
  static RunDir create(const std::string& path, bool overwrite, FileSystem& files = system_files());
  // A run to go on with. Removes what dead processes left half-written.
  static RunDir open(const std::string& path, FileSystem& files = system_files());

  const std::string& path() const { return path_; }
  void check_owner() { lock_.check(); }  // throws LockLost
  std::string file(const std::string& name) const { return join_path(path_, name); }
  std::string config_path() const { return file("config.toml"); }
  std::string metrics_path() const { return file("metrics.jsonl"); }
  std::string best_path() const { return file("best.h5"); }
  std::string checkpoint_path(int64_t step) const;

  // Publishes checkpoints/step-<step>.h5. A file of that name is replaced only if it does not verify; when it verifies and holds
  // the same state there is nothing to do; another state is an Error. This and all that follow throw LockLost when the directory
  // has become another process's.
  void save(const CheckpointImage& image);
  // Of this step a file of the same state is replaced: what is no part of the state, such as the best loss, has changed.
  void replace_at(int64_t step) { replaceable_ = step; }
  // Makes best.h5 the checkpoint of `step`, after that has verified.
  void set_best(int64_t step);
  // Removes all but the newest `keep` (at least 1) checkpoints that verify, and those of the steps `also`. Damaged ones do not
  // count. To be called after save(). What could not be removed is returned, one message each: it is no reason to stop a run.
  std::vector<std::string> retain(int64_t keep, std::initializer_list<int64_t> also = {});
  // Removes the checkpoints after `step`: a run that went back to it takes another way from there.
  void discard_after(int64_t step);

 private:
  RunDir(std::string path, RunLock lock, FileSystem& files) : path_(std::move(path)), lock_(std::move(lock)), files_(&files) {}
  bool verifies(int64_t step);  // throws NewerFormat
  void remove_temporaries();
  void remove_run();

  std::string path_;
  RunLock lock_;
  FileSystem* files_;
  int64_t replaceable_ = -1;
  std::map<int64_t, bool> verified_;  // by step: what this process has read back itself
};

}  // namespace rowan
