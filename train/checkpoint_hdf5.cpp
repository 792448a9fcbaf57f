// Building an HDF5 file in memory.
#include "train/checkpoint_hdf5.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "train/checkpoint_format.h"
#include "train/checkpoint_hdf5_handles.h"

namespace rowan {
namespace {

// The memory of the core driver is ours: it is taken over when the driver lets go of it, at close. (H5Fget_file_image on an open
// file is no way: libhdf5 1.10.8 clears a byte of the superblock without redoing its checksum.)
struct ImageMemory {
  void* data = nullptr;
  size_t capacity = 0;
  bool released = false;
};

// The driver touches every page of a large image at once; faults of 2 MiB instead of 4 KiB take a fraction of the time.
void use_huge_pages(void* data, size_t size) {
  constexpr uintptr_t kHuge = uintptr_t{2} << 20;
  const auto begin = (reinterpret_cast<uintptr_t>(data) + kHuge - 1) / kHuge * kHuge;
  const auto end = (reinterpret_cast<uintptr_t>(data) + size) / kHuge * kHuge;
  if (data != nullptr && begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

void* image_malloc(size_t size, H5FD_file_image_op_t, void* context) {
  auto* memory = static_cast<ImageMemory*>(context);
  memory->data = std::calloc(1, size);
  use_huge_pages(memory->data, size);
  memory->capacity = memory->data == nullptr ? 0 : size;
  return memory->data;
}
void* image_realloc(void* data, size_t size, H5FD_file_image_op_t op, void* context) {
  if (data == nullptr) return image_malloc(size, op, context);
  auto* memory = static_cast<ImageMemory*>(context);
  void* moved = std::realloc(data, size);
  if (moved == nullptr) return nullptr;
  memory->data = moved;
  memory->capacity = size;
  return moved;
}
herr_t image_free(void*, H5FD_file_image_op_t, void* context) {
  static_cast<ImageMemory*>(context)->released = true;
  return 0;
}
void* keep_context(void* context) {
  return context;
}
herr_t forget_context(void*) {
  return 0;
}

Hid memory_access(ImageMemory& memory, size_t increment) {
  Hid access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "make an access list");
  H5FD_file_image_callbacks_t callbacks = {image_malloc, nullptr, image_realloc, image_free, keep_context, forget_context, &memory};
  check_hdf5(H5Pset_fapl_core(access, increment, false), "choose memory");
  check_hdf5(H5Pset_file_image_callbacks(access, &callbacks), "choose memory");
  // Format of HDF5 1.8: read everywhere, and its metadata carries checksums.
  check_hdf5(H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V18), "choose the format");
  return access;
}

// The driver's memory is larger than the file, and so is what H5Fget_filesize says while it is open. The end stands in the
// superblock: HDF5 File Format Specification 3.0, II.A, version 2; bytes 28..35, counted from the start of the file.
size_t end_of_file(const ImageMemory& memory) {
  constexpr size_t kSuperblock = CheckpointHeader::kBytes;
  const auto* bytes = static_cast<const uint8_t*>(memory.data);
  uint64_t end = 0;
  if (memory.capacity < kSuperblock + 36 || bytes[kSuperblock + 8] != 2 || bytes[kSuperblock + 9] != 8)
    fail_hdf5("measure the file");
  std::memcpy(&end, bytes + kSuperblock + 28, sizeof end);
  if (end > memory.capacity) fail_hdf5("measure the file");
  return static_cast<size_t>(end);
}

// Times in objects would make equal states differ.
Hid without_times(hid_t list_class) {
  Hid list(H5Pcreate(list_class), H5Pclose, "make a property list");
  check_hdf5(H5Pset_obj_track_times(list, false), "switch times off");
  return list;
}

}  // namespace

struct Hdf5Image::State {
  ImageMemory memory;
  Hid file;
  std::set<std::string> groups;

  ~State() {
    const auto lock = hdf5_lock();
    file.close();
    std::free(memory.data);
  }
};

Hdf5Image::Hdf5Image(int64_t expected_bytes) : state_(std::make_unique<State>()) {
  const auto lock = hdf5_lock();
  const auto increment = static_cast<size_t>(std::max<int64_t>(expected_bytes, 1 << 16));
  const Hid access = memory_access(state_->memory, increment);
  const Hid creation = without_times(H5P_FILE_CREATE);
  check_hdf5(H5Pset_userblock(creation, CheckpointHeader::kBytes), "make room for the header");
  state_->file = Hid(H5Fcreate("rowan", H5F_ACC_TRUNC, creation, access), H5Fclose, "start a file in memory");
}

Hdf5Image::~Hdf5Image() = default;

void Hdf5Image::attribute(const std::string& name, const std::string& text) {
  const auto lock = hdf5_lock();
  const Hid type = text_type(text.size());
  const Hid space(H5Screate(H5S_SCALAR), H5Sclose, "make a dataspace");
  const Hid attribute(H5Acreate2(state_->file, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT), H5Aclose, "make an attribute");
  const std::string padded = text.empty() ? std::string(1, '\0') : text;
  check_hdf5(H5Awrite(attribute, type, padded.data()), "write an attribute");
}

void Hdf5Image::attribute(const std::string& name, int64_t value) {
  const auto lock = hdf5_lock();
  const Hid space(H5Screate(H5S_SCALAR), H5Sclose, "make a dataspace");
  const Hid attribute(H5Acreate2(state_->file, name.c_str(), H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT), H5Aclose,
                      "make an attribute");
  check_hdf5(H5Awrite(attribute, H5T_NATIVE_INT64, &value), "write an attribute");
}

int64_t Hdf5Image::dataset(const ArrayRef& array) {
  const auto lock = hdf5_lock();
  for (size_t slash = array.path.find('/', 1); slash != std::string::npos; slash = array.path.find('/', slash + 1)) {
    const std::string group = array.path.substr(0, slash);
    if (!state_->groups.insert(group).second) continue;
    const Hid creation = without_times(H5P_GROUP_CREATE);
    Hid(H5Gcreate2(state_->file, group.c_str(), H5P_DEFAULT, creation, H5P_DEFAULT), H5Gclose, "make a group");
  }
  const Hid type = file_type(array);
  const Hid space = file_space(array);
  const Hid creation = without_times(H5P_DATASET_CREATE);
  check_hdf5(H5Pset_layout(creation, H5D_CONTIGUOUS), "choose the layout");
  check_hdf5(H5Pset_alloc_time(creation, H5D_ALLOC_TIME_EARLY), "choose the layout");
  check_hdf5(H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER), "choose the layout");
  const Hid dataset(H5Dcreate2(state_->file, array.path.c_str(), type, space, H5P_DEFAULT, creation, H5P_DEFAULT), H5Dclose,
                    "make a dataset");
  const int64_t elements = H5Sget_simple_extent_npoints(space);
  if (elements == 0) return 0;
  static constexpr char kNothing[1] = {};  // the one NUL of an empty text
  const bool empty_text = array.dtype == DType::kText && array.dims.at(0) == 0;
  check_hdf5(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, empty_text ? kNothing : array.data), "write a dataset");
  const haddr_t offset = H5Dget_offset(dataset);
  if (offset == HADDR_UNDEF) fail_hdf5("place a dataset");
  return empty_text ? 0 : static_cast<int64_t>(offset);
}

Hdf5Image::Finished Hdf5Image::finish() {
  const auto lock = hdf5_lock();
  check_hdf5(H5Fflush(state_->file, H5F_SCOPE_GLOBAL), "finish the file");
  state_->file.close();
  ImageMemory& memory = state_->memory;
  if (!memory.released || memory.data == nullptr) fail_hdf5("finish the file");
  const size_t size = end_of_file(memory);
  return {CheckpointImage::Buffer(static_cast<uint8_t*>(std::exchange(memory.data, nullptr))), static_cast<size_t>(size)};
}

}  // namespace rowan
