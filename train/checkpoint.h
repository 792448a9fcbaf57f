// Checkpoints: one file that holds a whole training state, format version 1 (docs/CHECKPOINT.md).
//
// The file is HDF5, readable with h5py, h5dump and h5wasm, behind a header of ours in the HDF5 user block. Named arrays stand in
// /config /model /optim /train /rng /loader /tokenizer; /digest/index lists every one of them with its type, shape, place and
// checksum. Loading needs no libhdf5: it checks the header and the digest of all bytes, reads the index, and then the arrays by
// place, each against its checksum. libhdf5 writes; it reads only what a user edited (`rowan convert`).
//
//   CheckpointWriter writer;                         Checkpoint checkpoint = Checkpoint::open(path);
//   writer.add("/train/step", step);                 checkpoint.take("/train/step", step);
//   save_parameters(writer, model);                  load_parameters(checkpoint, model);
//   publish_checkpoint(writer.build({}), path);      checkpoint.finish();
#pragma once

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/tensor.h"
#include "train/digest.h"
#include "train/file.h"

namespace rowan {

inline constexpr uint32_t kCheckpointVersion = 1;

enum class DType { kFloat32, kFloat64, kInt32, kInt64, kUint8, kText };  // kText: UTF-8 without NUL, dims {bytes}
const char* dtype_name(DType dtype);                                     // "float32"
int64_t dtype_bytes(DType dtype);
inline constexpr DType kRealDType = kRealIsDouble ? DType::kFloat64 : DType::kFloat32;

// An array to save. The data must live until CheckpointWriter::build() has returned.
struct ArrayRef {
  std::string path;  // "/model/blocks.0.norm1.weight"
  DType dtype = DType::kUint8;
  std::vector<int64_t> dims;  // {} is a scalar
  const void* data = nullptr;
};

// An array in a checkpoint, as its index says.
struct ArrayInfo {
  std::string path;
  DType dtype = DType::kUint8;
  std::vector<int64_t> dims;
  int64_t offset = 0;  // of its first byte in the file
  int64_t bytes = 0;
  std::string checksum;  // XXH3-128 of its bytes

  std::string shape_text() const;  // "(65,128)", "scalar"
};

struct CheckpointInfo {
  std::string created;        // UTC, "2025-01-31T23:59:59Z"; without effect on anything
  std::string rowan_version;  // of the program that wrote it
  bool complete = true;       // holds all that a resume needs; false: weights only
};

// A finished file in memory: a copy of the state, ready to be written while training goes on.
class CheckpointImage {
 public:
  struct Free {
    void operator()(uint8_t* p) const { std::free(p); }
  };
  using Buffer = std::unique_ptr<uint8_t[], Free>;

  CheckpointImage(Buffer bytes, size_t size, int64_t step, std::string state_digest)
      : bytes_(std::move(bytes)), size_(size), step_(step), state_digest_(std::move(state_digest)) {}

  std::span<const uint8_t> bytes() const { return {bytes_.get(), size_}; }
  int64_t step() const { return step_; }
  const std::string& state_digest() const { return state_digest_; }

 private:
  Buffer bytes_;
  size_t size_;
  int64_t step_;
  std::string state_digest_;
};

// Collects named arrays. Equal contents give equal images, byte for byte (CheckpointInfo::created aside), in whatever order they
// were added. Tensors are held by handle, the rest is copied; an ArrayRef is neither.
class CheckpointWriter {
 public:
  void add(const ArrayRef& array);
  void add(const std::string& path, const Tensor& value);
  void add(const std::string& path, int64_t value);
  void add(const std::string& path, double value);
  void add(const std::string& path, std::vector<int32_t> values);
  void add(const std::string& path, std::vector<int64_t> values);
  void add(const std::string& path, std::vector<double> values);
  void add(const std::string& path, std::vector<uint8_t> values);
  void add_text(const std::string& path, std::string text);

  // Error unless /config and /train/step are there. An empty `created` is the time now, an empty version this program's.
  CheckpointImage build(CheckpointInfo info) const;

 private:
  using Held = std::variant<Tensor, int64_t, double, std::vector<int32_t>, std::vector<int64_t>, std::vector<double>,
                            std::vector<uint8_t>, std::string>;
  void hold(const std::string& path, Held value);

  std::map<std::string, ArrayRef> arrays_;   // by path
  std::vector<std::unique_ptr<Held>> held_;  // what entries of arrays_ point to
};

// Publishes an image as publish_file() does.
void publish_checkpoint(const CheckpointImage& image, const std::string& path, IfExists if_exists,
                        FileSystem& files = system_files());

// What is wrong with a file, as closely as can be told without trusting it.
struct VerifyReport {
  std::string problem;               // "" when all of it verifies: what Checkpoint::open() would say
  std::vector<std::string> damaged;  // arrays whose bytes do not have their checksum
  std::vector<ArrayInfo> arrays;     // of its index, when that can be read
  bool may_be_edited = false;        // it looks like a checkpoint, or HDF5, that somebody changed
  // The problem is that the file can't be looked at: it is missing, no file, of a newer Rowan, or the system refuses to open it.
  // Nothing is said about what is in it. A device that can't give the bytes back (EIO) is damage.
  bool unreadable = false;

  bool ok() const { return problem.empty(); }
};
VerifyReport verify_checkpoint(const std::string& path, FileSystem& files = system_files());

// A whole checkpoint that a newer Rowan wrote: not damaged, and not to be replaced.
class NewerFormat : public Error {
 public:
  using Error::Error;
};

// A verified checkpoint, open for reading. It stays readable when the file is removed meanwhile.
class Checkpoint {
 public:
  // Checks the header, the length and the digest of every byte in bounded memory. Errors (kData) tell apart: not a checkpoint,
  // HDF5 that Rowan did not sign, a newer version, cut off or grown, damaged.
  static Checkpoint open(const std::string& path, FileSystem& files = system_files());

  const std::string& path() const { return file_.path(); }
  const CheckpointInfo& info() const { return info_; }
  const std::string& state_digest() const { return state_digest_; }  // one hash of model, optimizer, rng, loader and step
  int64_t file_bytes() const { return file_bytes_; }
  const std::vector<ArrayInfo>& arrays() const { return arrays_; }  // sorted by path
  bool contains(const std::string& path) const { return find(path) != nullptr; }
  const ArrayInfo* find(const std::string& path) const;
  void read(const ArrayInfo& array, void* data) const;  // array.bytes bytes, checked against its checksum

  // Reading by name, at once: a missing entry or another type is an Error.
  int64_t integer(const std::string& path) const;
  double number(const std::string& path) const;
  std::string text(const std::string& path) const;
  std::vector<uint8_t> blob(const std::string& path) const;

  // Strict reading of a whole state. What does not fit is noted, leaves `value` as it is, and comes out of finish().
  void take(const std::string& path, Tensor& value);         // any shape: `value` becomes what was saved
  void take_shaped(const std::string& path, Tensor& value);  // the shape of `value`, into its storage
  void take(const std::string& path, int64_t& value);
  void take(const std::string& path, double& value);
  void take(const std::string& path, std::vector<int32_t>& value);
  void take(const std::string& path, std::vector<int64_t>& value);
  void take(const std::string& path, std::vector<double>& value);
  void take(const std::string& path, std::vector<uint8_t>& value);
  void take_text(const std::string& path, std::string& value);
  void skip(const std::string& path) { taken_.insert(path); }  // known, not wanted: not "extra"

  // One Error that lists everything missing, extra or of another type or shape. Only entries under `groups` ("/model", "/optim/x")
  // count as extra; none given: all of them.
  void finish(const std::vector<std::string>& groups = {}) const;

 private:
  explicit Checkpoint(File file) : file_(std::move(file)) {}
  const ArrayInfo* expect(const std::string& path, DType dtype, const std::vector<int64_t>* dims);
  const ArrayInfo& require(const std::string& path, DType dtype, bool scalar) const;
  template <class T>
  void take_vector(const std::string& path, DType dtype, std::vector<T>& value);

  File file_;
  CheckpointInfo info_;
  std::string state_digest_;
  int64_t file_bytes_ = 0;
  std::vector<ArrayInfo> arrays_;
  std::set<std::string> taken_;
  std::vector<std::string> missing_, misfits_;
  bool other_real_ = false;  // an array of the other build's Real was met
};

}  // namespace rowan
