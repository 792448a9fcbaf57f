// Reading HDF5 files that have a checkpoint's structure but perhaps not its signature.
#include <sys/stat.h>

#include <algorithm>

#include "train/checkpoint_format.h"
#include "train/checkpoint_hdf5.h"
#include "train/checkpoint_hdf5_handles.h"

namespace rowan {
namespace {

constexpr int kDeepest = 4;
constexpr size_t kMostLinks = 1 << 20;
constexpr int kMostDims = 8;

struct Link {
  std::string name;
  H5L_type_t type;
};

herr_t collect_link(hid_t, const char* name, const H5L_info_t* info, void* context) {
  auto& links = *static_cast<std::vector<Link>*>(context);
  links.push_back({name, info->type});
  return links.size() < kMostLinks ? 0 : 1;
}

class Walker {
 public:
  Walker(const std::string& path, int64_t file_bytes, Hdf5Data what) : path_(path), file_bytes_(file_bytes), what_(what) {}

  void group(hid_t group, const std::string& prefix, int depth, std::vector<Hdf5Contents::Array>& out) const {
    if (depth > kDeepest) fail(prefix, "is nested too deep");
    std::vector<Link> links;
    check_hdf5(H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, nullptr, collect_link, &links), "list a group");
    for (const Link& link : links) {
      const std::string name = prefix + "/" + link.name;
      if (link.type != H5L_TYPE_HARD) fail(name, "is a soft or external link; only data in the file itself is read");
      if (name == "/digest" && what_ == Hdf5Data::kRead) continue;  // a new file gets a digest of its own
      const Hid object(H5Oopen(group, link.name.c_str(), H5P_DEFAULT), H5Oclose, "open an object");
      const H5I_type_t kind = H5Iget_type(object);
      if (kind == H5I_GROUP) {
        this->group(object, name, depth + 1, out);
      } else if (kind == H5I_DATASET) {
        if (!valid_array_path(name) && prefix != "/digest") fail(name, "does not belong in a checkpoint");
        out.push_back(dataset(object, name));
      } else {
        fail(name, "is neither a group nor a dataset");
      }
    }
  }

 private:
  [[noreturn]] void fail(const std::string& name, const std::string& what) const {
    fail_data("[checkpoint] ", name, " in '", path_, "' ", what);
  }

  DType dtype(hid_t type, const std::string& name) const {
    if (H5Tget_class(type) == H5T_STRING) {
      if (H5Tis_variable_str(type) != 0) fail(name, "is a string of variable length; write numpy.bytes_(text) instead");
      return DType::kText;
    }
    const std::pair<hid_t, DType> known[] = {{H5T_IEEE_F32LE, DType::kFloat32},
                                             {H5T_IEEE_F64LE, DType::kFloat64},
                                             {H5T_STD_I32LE, DType::kInt32},
                                             {H5T_STD_I64LE, DType::kInt64},
                                             {H5T_STD_U8LE, DType::kUint8}};
    for (const auto& [hdf5, ours] : known) {
      if (H5Tequal(type, hdf5) > 0) return ours;
    }
    fail(name, "is of another type than float32, float64, int32, int64, uint8 (all little-endian) or text");
  }

  std::vector<int64_t> dims(hid_t space, const std::string& name) const {
    const int rank = H5Sget_simple_extent_ndims(space);
    if (rank < 0 || rank > kMostDims) fail(name, "has a rank that is not between 0 and 8");
    if (H5Sget_simple_extent_type(space) == H5S_NULL) fail(name, "has no data");
    hsize_t sizes[kMostDims] = {};
    if (H5Sget_simple_extent_dims(space, sizes, nullptr) < 0) fail(name, "has a shape that can't be read");
    std::vector<int64_t> out;
    for (int i = 0; i < rank; ++i) {
      if (sizes[i] > static_cast<hsize_t>(INT64_MAX)) fail(name, "has an impossible shape");
      out.push_back(static_cast<int64_t>(sizes[i]));
    }
    return out;
  }

  // Everything that could make a read leave the file or run foreign code is refused before the read.
  void check_storage(hid_t dataset, const std::string& name, int64_t bytes) const {
    const Hid creation(H5Dget_create_plist(dataset), H5Pclose, "look at a dataset");
    if (H5Pget_layout(creation) != H5D_CONTIGUOUS) fail(name, "is chunked, compact or virtual; contiguous storage is needed");
    if (H5Pget_external_count(creation) != 0) fail(name, "keeps its data in another file");
    if (H5Pget_nfilters(creation) != 0) fail(name, "is compressed or filtered");
    const hsize_t stored = H5Dget_storage_size(dataset);
    if (stored != static_cast<hsize_t>(bytes) || bytes > file_bytes_) {
      fail(name, join_text("has ", stored, " bytes of data; its shape and type need ", bytes));
    }
  }

  Hdf5Contents::Array dataset(hid_t dataset, const std::string& name) const {
    const Hid type(H5Dget_type(dataset), H5Tclose, "look at a dataset");
    const Hid space(H5Dget_space(dataset), H5Sclose, "look at a dataset");
    Hdf5Contents::Array array;
    array.ref = {.path = name, .dtype = dtype(type, name), .dims = dims(space, name), .data = nullptr};
    const bool text = array.ref.dtype == DType::kText;
    if (text && !array.ref.dims.empty()) fail(name, "is an array of strings; one string was expected");
    int64_t bytes = static_cast<int64_t>(H5Tget_size(type));
    for (const int64_t d : array.ref.dims) {
      if (__builtin_mul_overflow(bytes, d, &bytes)) fail(name, "has an impossible shape");
    }
    check_storage(dataset, name, bytes);
    if (bytes > 0) array.offset = static_cast<int64_t>(H5Dget_offset(dataset));
    if (what_ == Hdf5Data::kTextsOnly && !text) return array;
    array.bytes.resize(static_cast<size_t>(bytes));
    if (bytes > 0) check_hdf5(H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, array.bytes.data()), "read a dataset");
    if (text) {
      while (!array.bytes.empty() && array.bytes.back() == 0) array.bytes.pop_back();  // the padding
      array.ref.dims = {static_cast<int64_t>(array.bytes.size())};
    }
    array.ref.data = array.bytes.data();  // a vector keeps its storage when it is moved
    return array;
  }

  const std::string& path_;
  int64_t file_bytes_;
  Hdf5Data what_;
};

std::string text_attribute(hid_t file, const char* name) {  // "" when there is none of fixed length
  if (H5Aexists(file, name) <= 0) return {};
  const Hid attribute(H5Aopen(file, name, H5P_DEFAULT), H5Aclose, "open an attribute");
  const Hid type(H5Aget_type(attribute), H5Tclose, "look at an attribute");
  const Hid space(H5Aget_space(attribute), H5Sclose, "look at an attribute");
  const size_t size = H5Tget_size(type);
  if (H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) != 0 || size == 0 || size > 200) return {};
  if (H5Sget_simple_extent_npoints(space) != 1) return {};
  std::string text(size, '\0');
  check_hdf5(H5Aread(attribute, type, text.data()), "read an attribute");
  return text.substr(0, text.find('\0'));
}

int64_t integer_attribute(hid_t file, const char* name) {  // -1 when there is none
  if (H5Aexists(file, name) <= 0) return -1;
  const Hid attribute(H5Aopen(file, name, H5P_DEFAULT), H5Aclose, "open an attribute");
  const Hid type(H5Aget_type(attribute), H5Tclose, "look at an attribute");
  const Hid space(H5Aget_space(attribute), H5Sclose, "look at an attribute");
  if (H5Tget_class(type) != H5T_INTEGER || H5Sget_simple_extent_npoints(space) != 1) return -1;
  int64_t value = -1;
  check_hdf5(H5Aread(attribute, H5T_NATIVE_INT64, &value), "read an attribute");
  return value;
}

CheckpointInfo read_info(hid_t file, const std::string& path) {
  if (text_attribute(file, "format") != "rowan") {
    fail_data("[checkpoint] '", path,
              "' has no attribute format = \"rowan\" (a string of fixed length): it is not a Rowan checkpoint");
  }
  const int64_t version = integer_attribute(file, "version");
  if (version != kCheckpointVersion) {
    fail_data("[checkpoint] '", path, "' has format version ", version, "; this program converts version ", kCheckpointVersion);
  }
  const int64_t complete = integer_attribute(file, "complete");
  if (complete != 0 && complete != 1) fail_data("[checkpoint] '", path, "' has no attribute complete that is 0 or 1");
  return {text_attribute(file, "created"), text_attribute(file, "rowan_version"), complete == 1};
}

}  // namespace

Hdf5Contents read_hdf5(const std::string& path, Hdf5Data what) {
  const int64_t file_bytes = File::open(path).size();  // also: a regular file that can be read
  const auto lock = hdf5_lock();
  const Hid access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "make an access list");
  check_hdf5(H5Pset_file_locking(access, false, true), "switch file locking off");
  const Hid file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access), H5Fclose, ("open '" + path + "' as HDF5").c_str());
  Hdf5Contents contents;
  contents.info = read_info(file, path);
  Walker(path, file_bytes, what).group(file, "", 0, contents.arrays);
  std::sort(contents.arrays.begin(), contents.arrays.end(), [](const auto& a, const auto& b) { return a.ref.path < b.ref.path; });
  return contents;
}

}  // namespace rowan
