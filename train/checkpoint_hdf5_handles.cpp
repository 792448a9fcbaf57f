#include "train/checkpoint_hdf5_handles.h"

#include <algorithm>

namespace rowan {
namespace {

herr_t keep_innermost(unsigned, const H5E_error2_t* error, void* context) {
  if (error->desc != nullptr) *static_cast<std::string*>(context) = error->desc;
  return 0;
}

}  // namespace

std::unique_lock<std::mutex> hdf5_lock() {
  static std::mutex mutex;  // libhdf5 has one state for the whole process
  std::unique_lock lock(mutex);
  static const bool ready = [] {
    H5dont_atexit();
    H5open();
    H5PLset_loading_state(0);
    return true;
  }();
  static_cast<void>(ready);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // a setting of each thread
  return lock;
}

void fail_hdf5(const char* action) {
  std::string reason = "no reason given";
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, keep_innermost, &reason);
  fail_data("[hdf5] cannot ", action, ": ", reason);
}

Hid text_type(size_t bytes) {
  Hid type(H5Tcopy(H5T_C_S1), H5Tclose, "make a text type");
  check_hdf5(H5Tset_size(type, std::max<size_t>(bytes, 1)), "make a text type");
  check_hdf5(H5Tset_cset(type, H5T_CSET_UTF8), "make a text type");
  check_hdf5(H5Tset_strpad(type, H5T_STR_NULLPAD), "make a text type");
  return type;
}

Hid file_type(const ArrayRef& array) {
  if (array.dtype == DType::kText) return text_type(static_cast<size_t>(array.dims.at(0)));
  hid_t type = -1;
  switch (array.dtype) {
    case DType::kFloat32:
      type = H5T_IEEE_F32LE;
      break;
    case DType::kFloat64:
      type = H5T_IEEE_F64LE;
      break;
    case DType::kInt32:
      type = H5T_STD_I32LE;
      break;
    case DType::kInt64:
      type = H5T_STD_I64LE;
      break;
    case DType::kUint8:
      type = H5T_STD_U8LE;
      break;
    case DType::kText:
      break;
  }
  return Hid(H5Tcopy(type), H5Tclose, "choose a type");
}

Hid file_space(const ArrayRef& array) {
  if (array.dtype == DType::kText || array.dims.empty()) return Hid(H5Screate(H5S_SCALAR), H5Sclose, "make a dataspace");
  const std::vector<hsize_t> dims(array.dims.begin(), array.dims.end());
  return Hid(H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr), H5Sclose, "make a dataspace");
}

}  // namespace rowan
