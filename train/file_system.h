// FileSystem: the system calls behind every file that Rowan writes, in one place, so that a test can make any of them fail.
//
// Each member is one call and answers as the call does: -1 (or nullptr) and errno on failure. Nothing is repeated or repaired
// here; that is the work of train/file.h, whose handling of short writes, interruptions and full disks is then under test.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace rowan {

class FileSystem {
 public:
  virtual ~FileSystem() = default;

  virtual int open(const std::string& path, int flags, mode_t mode);
  virtual int close(int fd);
  virtual ssize_t pread(int fd, void* data, size_t bytes, int64_t offset);
  virtual ssize_t pwrite(int fd, const void* data, size_t bytes, int64_t offset);
  virtual ssize_t write(int fd, const void* data, size_t bytes);
  virtual int fsync(int fd);
  virtual int reserve(int fd, int64_t bytes);   // fallocate: room for bytes, or ENOSPC now
  virtual int truncate(int fd, int64_t bytes);  // ftruncate
  virtual int status(int fd, struct stat& out);
  virtual int drop_cache(int fd);                                      // the next reads ask the device, where the system agrees
  virtual int lock(int fd);                                            // flock, exclusive, without waiting
  virtual int rename(const std::string& from, const std::string& to);  // replaces `to`
  virtual int rename_new(const std::string& from,
                         const std::string& to);  // EEXIST when `to` exists; EINVAL, ENOSYS: not supported here
  virtual int link(const std::string& from, const std::string& to);
  virtual int unlink(const std::string& path);
  virtual int make_directory(const std::string& path);
  virtual int list(const std::string& path, std::vector<std::string>& names);  // without . and .., in no order
};

// Repeats a call as long as a signal interrupts it.
template <class Call>
auto again(Call&& call) {
  auto result = call();
  while (result == -1 && errno == EINTR) result = call();
  return result;
}

FileSystem& system_files();  // the real one; it has no state

}  // namespace rowan
