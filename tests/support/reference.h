// Reference values that PyTorch computed in float64 (tools/make_reference.py says the layout). Files are read from the folder that
// the environment variable ROWAN_REFERENCE_DIR names, else from tests/fixtures/reference. Sizes and settings are the files' own.
#pragma once

#include <hdf5.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/ids.h"
#include "core/tensor.h"

namespace rowan::test {

inline std::string reference_path(const std::string& file) {
  const char* folder = std::getenv("ROWAN_REFERENCE_DIR");
  return std::string(folder != nullptr ? folder : ROWAN_FIXTURES "/reference") + "/" + file;
}

class Reference {
 public:
  explicit Reference(const std::string& file) : path_(reference_path(file)) {
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // errors are thrown, not printed
    file_ = H5Fopen(path_.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
    ROWAN_CHECK(file_ >= 0, "[reference] cannot open ", path_);
  }
  ~Reference() { H5Fclose(file_); }
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;

  std::vector<int64_t> shape(const std::string& name) const {
    const hid_t set = open(name), space = H5Dget_space(set);
    std::vector<hsize_t> dims(static_cast<size_t>(H5Sget_simple_extent_ndims(space)));
    H5Sget_simple_extent_dims(space, dims.data(), nullptr);
    H5Sclose(space);
    H5Dclose(set);
    return {dims.begin(), dims.end()};
  }
  std::vector<double> doubles(const std::string& name) const { return read<double>(name, H5T_NATIVE_DOUBLE); }
  std::vector<int32_t> ints(const std::string& name) const { return read<int32_t>(name, H5T_NATIVE_INT32); }

  Tensor tensor(const std::string& name) const {
    Shape s;
    for (int64_t dim : shape(name)) s.append(dim);
    const std::vector<double> values = doubles(name);
    Tensor t(s);
    for (size_t i = 0; i < values.size(); ++i) t.data()[i] = static_cast<Real>(values[i]);
    return t;
  }

  std::vector<std::string> names(const std::string& group) const {  // datasets of a group, in the order of their names
    std::vector<std::string> found;
    const herr_t status = H5Literate_by_name(
        file_, group.c_str(), H5_INDEX_NAME, H5_ITER_INC, nullptr,
        [](hid_t, const char* name, const H5L_info_t*, void* out) -> herr_t {
          static_cast<std::vector<std::string>*>(out)->emplace_back(name);
          return 0;
        },
        &found, H5P_DEFAULT);
    ROWAN_CHECK(status >= 0, "[reference] ", path_, " has no group ", group);
    return found;
  }

  // Attributes of /. A boolean is an HDF5 enumeration; strings have variable length.
  bool has(const std::string& name) const { return H5Aexists(file_, name.c_str()) > 0; }
  double number(const std::string& name) const {
    double value = 0;
    read_attribute(name, H5T_NATIVE_DOUBLE, &value);
    return value;
  }
  int64_t integer(const std::string& name) const {
    int64_t value = 0;
    read_attribute(name, H5T_NATIVE_INT64, &value);
    return value;
  }
  bool flag(const std::string& name) const {
    const hid_t attribute = H5Aopen(file_, name.c_str(), H5P_DEFAULT);
    ROWAN_CHECK(attribute >= 0, "[reference] ", path_, " has no attribute ", name);
    const hid_t type = H5Aget_type(attribute);
    int8_t value = 0;
    const bool ok = H5Tget_size(type) == 1 && H5Aread(attribute, type, &value) >= 0;
    H5Tclose(type);
    H5Aclose(attribute);
    ROWAN_CHECK(ok, "[reference] ", path_, " attribute ", name, " is not a boolean");
    return value != 0;
  }
  std::string text(const std::string& name) const {
    const hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, H5T_VARIABLE);
    H5Tset_cset(type, H5T_CSET_UTF8);
    char* value = nullptr;
    read_attribute(name, type, &value);
    const std::string out = value;
    H5free_memory(value);
    H5Tclose(type);
    return out;
  }

 private:
  hid_t open(const std::string& name) const {
    const hid_t set = H5Dopen2(file_, name.c_str(), H5P_DEFAULT);
    ROWAN_CHECK(set >= 0, "[reference] ", path_, " has no dataset ", name);
    return set;
  }
  template <class T>
  std::vector<T> read(const std::string& name, hid_t type) const {
    const hid_t set = open(name), space = H5Dget_space(set);
    std::vector<T> values(static_cast<size_t>(H5Sget_simple_extent_npoints(space)));
    const herr_t status = H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
    H5Sclose(space);
    H5Dclose(set);
    ROWAN_CHECK(status >= 0, "[reference] cannot read ", name, " of ", path_);
    return values;
  }
  void read_attribute(const std::string& name, hid_t type, void* to) const {
    const hid_t attribute = H5Aopen(file_, name.c_str(), H5P_DEFAULT);
    ROWAN_CHECK(attribute >= 0, "[reference] ", path_, " has no attribute ", name);
    const herr_t status = H5Aread(attribute, type, to);
    H5Aclose(attribute);
    ROWAN_CHECK(status >= 0, "[reference] cannot read attribute ", name, " of ", path_);
  }

  std::string path_;
  hid_t file_;
};

}  // namespace rowan::test
