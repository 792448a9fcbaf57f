// The only door to libhdf5. It builds a file in memory (libhdf5 never flushes to a device and can't be trusted with a full one)
// and reads files that a user edited. Calls from several threads take turns.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "train/checkpoint.h"

namespace rowan {

// An HDF5 file under construction, in memory, behind a user block of zeros for our header.
class Hdf5Image {
 public:
  explicit Hdf5Image(int64_t expected_bytes);  // a good guess of the final size spares copies
  ~Hdf5Image();
  Hdf5Image(const Hdf5Image&) = delete;
  Hdf5Image& operator=(const Hdf5Image&) = delete;

  void attribute(const std::string& name, const std::string& text);
  void attribute(const std::string& name, int64_t value);
  int64_t dataset(const ArrayRef& array);  // offset of its first byte in the file; 0 when it has none. Makes groups as needed
  struct Finished {
    CheckpointImage::Buffer bytes;
    size_t size = 0;
  };
  Finished finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// What an HDF5 file holds that has the structure of a checkpoint, signed or not. Refuses (Error, naming the object) links other
// than hard ones, external, virtual or chunked storage, filters, unknown groups and types, and data smaller than its shape says.
// libhdf5 1.10 can crash on a hostile file: call this in a process of its own (tools/guarded.h).
struct Hdf5Contents {
  struct Array {
    ArrayRef ref;  // data points into bytes
    std::vector<uint8_t> bytes;
    int64_t offset = 0;  // of its first byte in the file; 0 when it has none
  };
  CheckpointInfo info;
  std::vector<Array> arrays;  // by path
};
enum class Hdf5Data {
  kRead,       // all of it; /digest is left out, since it is of the file as it was
  kTextsOnly,  // of other arrays the type, shape and place; /digest too
};
Hdf5Contents read_hdf5(const std::string& path, Hdf5Data what = Hdf5Data::kRead);

// Compares what an HDF5 reader finds in the file with what our index says: the same arrays, types, shapes and places, the same
// attributes, the same texts under /digest. Error (kData) naming the first difference. For libhdf5 the same caution holds as above.
void check_hdf5_view(const Checkpoint& checkpoint);

}  // namespace rowan
