// What the fuzz targets share: a file in memory that has a path, and typed values cut off the fuzzer's bytes.
//
// A target treats rowan::Error as a good answer. Everything else that leaves it, a failed check() included, is a finding.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "core/error.h"

namespace rowan::fuzz {

using Bytes = std::span<const uint8_t>;

// Ends the process where the sanitizers' reports end it, so that the input is kept.
inline void check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: does not hold: %s\n", what);
  std::abort();
}

inline std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The fuzzer's bytes, taken from the front. At the end come zeros and empty pieces.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : rest_(data, size) {}

  bool empty() const { return rest_.empty(); }
  template <class T>
  T number() {
    T value = 0;
    const Bytes piece = take(sizeof value);
    std::memcpy(&value, piece.data(), piece.size());
    return value;
  }
  size_t below(size_t limit) { return limit == 0 ? 0 : number<uint16_t>() % limit; }
  Bytes take(size_t bytes) {
    const Bytes piece = rest_.first(std::min(bytes, rest_.size()));
    rest_ = rest_.subspan(piece.size());
    return piece;
  }
  Bytes all() { return take(rest_.size()); }
  std::string_view line() {  // without its end
    const std::string_view text = text_of(rest_);
    const size_t end = std::min(text.find('\n'), text.size());
    take(std::min(end + 1, text.size()));
    return text.substr(0, end);
  }

 private:
  Bytes rest_;
};

// A regular file that never touches a device.
class MemoryFile {
 public:
  MemoryFile() : fd_(memfd_create("fuzz", MFD_CLOEXEC)) {
    if (fd_ == -1) throw std::runtime_error("memfd_create failed");
  }
  ~MemoryFile() { close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }
  void write(Bytes bytes) const {
    if (ftruncate(fd_, 0) != 0) throw std::runtime_error("ftruncate failed");
    for (size_t done = 0; done < bytes.size();) {
      const ssize_t n = pwrite(fd_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
      if (n <= 0) throw std::runtime_error("pwrite failed");
      done += static_cast<size_t>(n);
    }
  }

 private:
  int fd_;
};

// True when it ended without an Error.
template <class Work>
bool accepted(Work&& work) {
  try {
    work();
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace rowan::fuzz
