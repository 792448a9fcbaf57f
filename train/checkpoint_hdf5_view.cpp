// Whether HDF5 readers and our loader see the same file.
#include "train/checkpoint_format.h"
#include "train/checkpoint_hdf5.h"

namespace rowan {
namespace {

class Comparison {
 public:
  explicit Comparison(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}

  void info(const CheckpointInfo& seen) const {
    const CheckpointInfo& info = checkpoint_.info();
    same("the attribute created", seen.created, info.created);
    same("the attribute rowan_version", seen.rowan_version, info.rowan_version);
    same("the attribute complete", std::to_string(seen.complete), std::to_string(info.complete));
  }

  // True for arrays of the index; /digest is compared by its text.
  bool array(const Hdf5Contents::Array& seen) const {
    const std::string& path = seen.ref.path;
    if (path.starts_with("/digest/")) {
      digest(path, std::string(seen.bytes.begin(), seen.bytes.end()));
      return false;
    }
    const ArrayInfo* info = checkpoint_.find(path);
    if (info == nullptr) fail(path + " is not in the index");
    same("the type of " + path, dtype_name(seen.ref.dtype), dtype_name(info->dtype));
    same("the shape of " + path, ArrayInfo{.path = {}, .dims = seen.ref.dims, .checksum = {}}.shape_text(), info->shape_text());
    if (info->bytes > 0) same("the place of " + path, std::to_string(seen.offset), std::to_string(info->offset));
    return true;
  }

  [[noreturn]] void fail(const std::string& what) const {
    fail_data("[checkpoint] '", checkpoint_.path(), "' shows HDF5 readers something else than its index says: ", what);
  }

 private:
  void same(const std::string& what, const std::string& seen, const std::string& expected) const {
    if (seen != expected) fail(what + " is " + seen + "; expected " + expected);
  }
  void digest(const std::string& path, const std::string& text) const {
    if (path == "/digest/state") return same(path, text, checkpoint_.state_digest());
    if (path != "/digest/index") fail(path + " does not belong there");
    const CheckpointIndex index{checkpoint_.info(), checkpoint_.state_digest(), checkpoint_.arrays()};
    if (text != encode_index(index)) fail(path + " is another text");
  }

  const Checkpoint& checkpoint_;
};

}  // namespace

void check_hdf5_view(const Checkpoint& checkpoint) {
  const Hdf5Contents seen = read_hdf5(checkpoint.path(), Hdf5Data::kTextsOnly);
  const Comparison compare(checkpoint);
  compare.info(seen.info);
  size_t found = 0, digests = 0;
  for (const Hdf5Contents::Array& array : seen.arrays) ++(compare.array(array) ? found : digests);
  if (found != checkpoint.arrays().size()) compare.fail(join_text("it has ", found, " of ", checkpoint.arrays().size(), " arrays"));
  if (digests != 2) compare.fail("/digest/state or /digest/index is missing");
}

}  // namespace rowan
