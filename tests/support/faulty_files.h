// FaultyFiles: a FileSystem in which the n-th call goes wrong, so that a test can let every call of an operation fail in turn.
//
//   for (int n = 0;; ++n) {
//     FaultyFiles files({.at = n, .code = ENOSPC});
//     ... the operation through `files` ...
//     if (!files.struck()) break;             // it made n calls: all of them have had their turn
//   }
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "train/file_system.h"

namespace rowan::test {

struct Fault {
  int at = -1;     // index of the call that goes wrong
  int code = EIO;  // its errno
  bool from_then_on = false;
  bool half = false;  // reads and writes do half of what they were asked, everything else works
  bool kill = false;  // the process ends before the call
  bool lie = false;   // fsync and writes report success and do nothing
};

class FaultyFiles final : public FileSystem {
 public:
  explicit FaultyFiles(const Fault& fault) : fault_(fault) {}
  bool struck() const { return calls_ > fault_.at; }
  int calls() const { return calls_; }
  const std::string& last_struck() const { return name_; }

  int open(const std::string& path, int flags, mode_t mode) override {
    return fails("open") ? -1 : FileSystem::open(path, flags, mode);
  }
  int close(int fd) override {  // a failing close has closed, as on Linux
    const bool bad = fails("close");
    const int code = errno;
    const int result = FileSystem::close(fd);
    if (bad) errno = code;
    return bad ? -1 : result;
  }
  ssize_t pread(int fd, void* data, size_t bytes, int64_t offset) override {
    return fails("pread") ? -1 : FileSystem::pread(fd, data, part(bytes), offset);
  }
  ssize_t pwrite(int fd, const void* data, size_t bytes, int64_t offset) override {
    if (fails("pwrite")) return -1;
    return lies_ ? static_cast<ssize_t>(bytes) : FileSystem::pwrite(fd, data, part(bytes), offset);
  }
  ssize_t write(int fd, const void* data, size_t bytes) override {
    return fails("write") ? -1 : FileSystem::write(fd, data, part(bytes));
  }
  int fsync(int) override { return fails("fsync") ? -1 : 0; }  // no test cuts the power: waiting for the device would prove nothing
  int reserve(int fd, int64_t bytes) override { return fails("reserve") ? -1 : FileSystem::reserve(fd, bytes); }
  int truncate(int fd, int64_t bytes) override { return fails("truncate") ? -1 : FileSystem::truncate(fd, bytes); }
  int status(int fd, struct stat& out) override { return fails("status") ? -1 : FileSystem::status(fd, out); }
  int drop_cache(int) override { return fails("drop_cache") ? -1 : 0; }  // would wait as well
  int lock(int fd) override { return fails("lock") ? -1 : FileSystem::lock(fd); }
  int rename(const std::string& a, const std::string& b) override { return fails("rename") ? -1 : FileSystem::rename(a, b); }
  int rename_new(const std::string& a, const std::string& b) override {
    return fails("rename_new") ? -1 : FileSystem::rename_new(a, b);
  }
  int link(const std::string& a, const std::string& b) override { return fails("link") ? -1 : FileSystem::link(a, b); }
  int unlink(const std::string& path) override { return fails("unlink") ? -1 : FileSystem::unlink(path); }
  int make_directory(const std::string& path) override { return fails("make_directory") ? -1 : FileSystem::make_directory(path); }
  int list(const std::string& path, std::vector<std::string>& names) override {
    return fails("list") ? -1 : FileSystem::list(path, names);
  }

 private:
  bool fails(const char* name) {
    const int call = calls_++;
    half_ = lies_ = false;
    if (fault_.at < 0 || call < fault_.at || (call > fault_.at && !fault_.from_then_on)) return false;
    name_ = name;
    if (fault_.kill) _exit(99);
    half_ = fault_.half;
    lies_ = fault_.lie;
    errno = fault_.code;
    return !half_ && !lies_;
  }
  size_t part(size_t bytes) const { return half_ ? std::max<size_t>(bytes / 2, 1) : bytes; }

  Fault fault_;
  int calls_ = 0;
  bool half_ = false, lies_ = false;
  std::string name_;
};

}  // namespace rowan::test
