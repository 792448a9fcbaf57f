// RunLock: keeps a second writer out of a run's directory.
//
// A file `run.lock` names its owner: process, host, boot and the time the process started. It appears whole or not at all, so of
// two starters one wins. A lock whose owner is dead (same host; no such process, another start time, or an earlier boot) is taken
// over; of another host's process nobody here can tell, and the lock is respected. None of this needs flock, which some network
// file systems lack; where flock works it is held as well, and shows owners that this process can't see (another container).
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "train/file.h"

namespace rowan {

struct LockOwner {
  int64_t pid = 0;
  std::string host;
  std::string boot;   // of the kernel; "" where it can't be told
  int64_t start = 0;  // of the process, in clock ticks since boot; 0 where it can't be told

  bool operator==(const LockOwner&) const = default;
  static LockOwner self();
  bool alive() const;  // true when in doubt
};

// The run's directory is another process's now. Nothing that the owner before can still do there is right.
class LockLost : public Error {
 public:
  using Error::Error;
};

class RunLock {
 public:
  // Error (kData) that names the owner's process and host when somebody else writes in `directory`.
  static RunLock acquire(const std::string& directory, FileSystem& files = system_files());
  RunLock(RunLock&&) noexcept = default;
  RunLock& operator=(RunLock&&) noexcept = default;
  ~RunLock() = default;  // gives the lock back; a forked child's copy does not

  // Before every change: throws LockLost when the directory has become somebody else's, who found it moved, removed or unlocked. A
  // lock that is only gone is made again.
  void check();
  // Removes what takers of dead owners' locks left when they died in turn.
  void remove_leftovers();

  static constexpr const char* kFileName = "run.lock";

 private:
  struct Held {
    std::string path;
    LockOwner owner;
    File flocked;
    FileSystem* files;
    std::mutex mutex = {};  // of check(): the log and a save in the background ask at once
    ~Held();
  };
  explicit RunLock(std::unique_ptr<Held> held) : held_(std::move(held)) {}
  static RunLock acquire_path(const std::string& path, int depth, FileSystem& files);
  static bool try_create(const std::string& path, FileSystem& files);
  bool stands() const;
  static RunLock hold(const std::string& path, FileSystem& files);

  std::unique_ptr<Held> held_;
};

}  // namespace rowan
