// A library for LD_PRELOAD that lets the n-th system call on a run's files go wrong, in any program and in any library it uses.
//
//   ROWAN_FAULT_DIR    only calls on files below this directory count
//   ROWAN_FAULT_AT     index of the call that goes wrong, from 0; none: calls are only counted
//   ROWAN_FAULT_KIND   kill | short | an errno: 28 (ENOSPC), 5 (EIO), 4 (EINTR)
//   ROWAN_FAULT_REPORT file that gets the number of calls, and the name of the one that was struck
//   ROWAN_FAULT_QUOTA  "bytes/calls": files below the directory may together hold so many bytes, in every second stretch of so many
//                      calls; a device that fills up and empties again. What does not fit is cut short, then refused with ENOSPC
//
// Covered: open, openat, close, read-free writes (write, pwrite), fsync, fdatasync, fallocate, ftruncate, rename, renameat2, link,
// unlink, mkdir, mmap. A close that fails has closed, as on Linux. "short" halves writes and does nothing to other calls.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>
#include <cstdarg>

#include <atomic>

namespace {

template <class F>
F real(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

struct Plan {
  char directory[PATH_MAX] = "";
  size_t length = 0;
  long at = -1;
  bool kill = false, half = false;
  int code = 0;
  long quota = -1, stretch = 1;
  int report = -1;

  Plan() {
    if (const char* d = getenv("ROWAN_FAULT_DIR")) snprintf(directory, sizeof directory, "%s", d);
    length = strlen(directory);
    if (const char* n = getenv("ROWAN_FAULT_AT")) at = strtol(n, nullptr, 10);
    const char* kind = getenv("ROWAN_FAULT_KIND");
    kill = kind != nullptr && strcmp(kind, "kill") == 0;
    half = kind != nullptr && strcmp(kind, "short") == 0;
    if (kind != nullptr && !kill && !half) code = atoi(kind);
    if (const char* q = getenv("ROWAN_FAULT_QUOTA")) {
      char* end = nullptr;
      quota = strtol(q, &end, 10);
      if (*end == '/') stretch = strtol(end + 1, nullptr, 10);
    }
    if (const char* path = getenv("ROWAN_FAULT_REPORT")) {
      report = real<int (*)(const char*, int, ...)>("open")(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    }
  }
};

Plan& plan() {
  static Plan p;
  return p;
}
std::atomic<long> calls{0};

bool inside(const char* path) {
  const Plan& p = plan();
  return p.length > 0 && path != nullptr && strncmp(path, p.directory, p.length) == 0;
}
bool inside(int fd) {
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t n = readlink(link, path, sizeof path - 1);
  if (n <= 0) return false;
  path[n] = 0;
  return inside(path);
}

void tell(const char* name) {
  char line[96];
  const int n = snprintf(line, sizeof line, "struck %s\n", name);
  if (plan().report >= 0) (void)!real<ssize_t (*)(int, const void*, size_t)>("write")(plan().report, line, static_cast<size_t>(n));
}

// Bytes below the directory; nftw() takes no context.
thread_local long used_bytes;
int add_size(const char*, const struct stat* status, int type, FTW*) {
  if (type == FTW_F) used_bytes += status->st_size;
  return 0;
}

// How many of `bytes` more find room now; `bytes` when there is no quota at the moment.
size_t room_for(const char* name, bool counts, size_t bytes) {
  const Plan& p = plan();
  if (p.quota < 0 || !counts || calls.load() / p.stretch % 2 == 0) return bytes;
  used_bytes = 0;
  nftw(p.directory, add_size, 8, FTW_PHYS);
  const long left = p.quota - used_bytes;
  const size_t room = left <= 0 ? 0 : static_cast<size_t>(left);
  if (room >= bytes) return bytes;
  tell(name);
  return room;
}

enum class Fate { kNormal, kFails, kHalf };
Fate fate(const char* name, bool counts) {
  if (!counts) return Fate::kNormal;
  const long call = calls++;
  const Plan& p = plan();
  if (call != p.at) return Fate::kNormal;
  tell(name);
  if (p.kill) raise(SIGKILL);
  if (p.half) return Fate::kHalf;
  errno = p.code;
  return Fate::kFails;
}

__attribute__((destructor)) void report_calls() {
  char line[64];
  const int n = snprintf(line, sizeof line, "calls %ld\n", calls.load());
  if (plan().report >= 0) (void)!real<ssize_t (*)(int, const void*, size_t)>("write")(plan().report, line, static_cast<size_t>(n));
}

}  // namespace

extern "C" {

#define ROWAN_OPEN(name)                                                                 \
  int name(const char* path, int flags, ...) {                                           \
    va_list rest;                                                                        \
    va_start(rest, flags);                                                               \
    const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0; \
    va_end(rest);                                                                        \
    if (fate("open", inside(path)) == Fate::kFails) return -1;                           \
    return real<int (*)(const char*, int, ...)>(#name)(path, flags, mode);               \
  }
ROWAN_OPEN(open)
ROWAN_OPEN(open64)

#define ROWAN_OPENAT(name)                                                               \
  int name(int at, const char* path, int flags, ...) {                                   \
    va_list rest;                                                                        \
    va_start(rest, flags);                                                               \
    const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0; \
    va_end(rest);                                                                        \
    if (fate("openat", inside(path)) == Fate::kFails) return -1;                         \
    return real<int (*)(int, const char*, int, ...)>(#name)(at, path, flags, mode);      \
  }
ROWAN_OPENAT(openat)
ROWAN_OPENAT(openat64)

int close(int fd) {
  const Fate f = fate("close", inside(fd));
  const int code = errno;
  const int result = real<int (*)(int)>("close")(fd);
  if (f != Fate::kFails) return result;
  errno = code;
  return -1;
}

ssize_t write(int fd, const void* data, size_t bytes) {
  const Fate f = fate("write", inside(fd));
  if (f == Fate::kFails) return -1;
  const size_t room = room_for("write", inside(fd), bytes);
  if (room < bytes) {
    if (room == 0) {
      errno = ENOSPC;
      return -1;
    }
    bytes = room;
  }
  return real<ssize_t (*)(int, const void*, size_t)>("write")(fd, data, f == Fate::kHalf ? (bytes + 1) / 2 : bytes);
}

#define ROWAN_PWRITE(name, offset_type)                                                                                          \
  ssize_t name(int fd, const void* data, size_t bytes, offset_type offset) {                                                     \
    const Fate f = fate("pwrite", inside(fd));                                                                                   \
    if (f == Fate::kFails) return -1;                                                                                            \
    return real<ssize_t (*)(int, const void*, size_t, offset_type)>(#name)(fd, data, f == Fate::kHalf ? (bytes + 1) / 2 : bytes, \
                                                                           offset);                                              \
  }
ROWAN_PWRITE(pwrite, off_t)
ROWAN_PWRITE(pwrite64, off64_t)

int fsync(int fd) {
  return fate("fsync", inside(fd)) == Fate::kFails ? -1 : real<int (*)(int)>("fsync")(fd);
}
int fdatasync(int fd) {
  return fate("fdatasync", inside(fd)) == Fate::kFails ? -1 : real<int (*)(int)>("fdatasync")(fd);
}
int fallocate(int fd, int mode, off_t offset, off_t length) {
  if (fate("fallocate", inside(fd)) == Fate::kFails) return -1;
  if (room_for("fallocate", inside(fd), static_cast<size_t>(length)) < static_cast<size_t>(length)) {
    errno = ENOSPC;
    return -1;
  }
  return real<int (*)(int, int, off_t, off_t)>("fallocate")(fd, mode, offset, length);
}
int ftruncate(int fd, off_t length) noexcept {
  return fate("ftruncate", inside(fd)) == Fate::kFails ? -1 : real<int (*)(int, off_t)>("ftruncate")(fd, length);
}
int rename(const char* from, const char* to) noexcept {
  return fate("rename", inside(to)) == Fate::kFails ? -1 : real<int (*)(const char*, const char*)>("rename")(from, to);
}
int renameat2(int from_at, const char* from, int to_at, const char* to, unsigned flags) noexcept {
  if (fate("renameat2", inside(to)) == Fate::kFails) return -1;
  return real<int (*)(int, const char*, int, const char*, unsigned)>("renameat2")(from_at, from, to_at, to, flags);
}
int link(const char* from, const char* to) noexcept {
  return fate("link", inside(to)) == Fate::kFails ? -1 : real<int (*)(const char*, const char*)>("link")(from, to);
}
int unlink(const char* path) noexcept {
  return fate("unlink", inside(path)) == Fate::kFails ? -1 : real<int (*)(const char*)>("unlink")(path);
}
int mkdir(const char* path, mode_t mode) noexcept {
  return fate("mkdir", inside(path)) == Fate::kFails ? -1 : real<int (*)(const char*, mode_t)>("mkdir")(path, mode);
}
void* mmap(void* address, size_t length, int protection, int flags, int fd, off_t offset) noexcept {
  if (fd >= 0 && fate("mmap", inside(fd)) == Fate::kFails) return MAP_FAILED;
  return real<void* (*)(void*, size_t, int, int, int, off_t)>("mmap")(address, length, protection, flags, fd, offset);
}

}  // extern "C"
