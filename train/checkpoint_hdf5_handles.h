// Owning handles and errors for libhdf5; private to train/checkpoint_hdf5*.cpp.
#pragma once

#include <hdf5.h>

#include <mutex>
#include <string>
#include <utility>

#include "train/checkpoint.h"

namespace rowan {

// Takes the turn for libhdf5, and sets it up on first use: nothing at exit (after a failed write that crashes), no printing of
// errors, no loading of plug-ins that a file names.
std::unique_lock<std::mutex> hdf5_lock();

[[noreturn]] void fail_hdf5(const char* action);  // Error with libhdf5's own innermost reason
inline void check_hdf5(herr_t result, const char* action) {
  if (result < 0) fail_hdf5(action);
}

class Hid {
 public:
  Hid() = default;
  Hid(hid_t id, herr_t (*closer)(hid_t), const char* action) : id_(id), closer_(closer) {
    if (id < 0) fail_hdf5(action);
  }
  Hid(Hid&& other) noexcept : id_(std::exchange(other.id_, -1)), closer_(other.closer_) {}
  Hid& operator=(Hid&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(closer_, other.closer_);
    return *this;
  }
  ~Hid() { close(); }
  void close() {
    if (id_ >= 0) closer_(std::exchange(id_, -1));
  }
  operator hid_t() const { return id_; }

 private:
  hid_t id_ = -1;
  herr_t (*closer_)(hid_t) = nullptr;
};

Hid text_type(size_t bytes);  // fixed length, UTF-8, padded with NUL
Hid file_type(const ArrayRef& array);
Hid file_space(const ArrayRef& array);

}  // namespace rowan
