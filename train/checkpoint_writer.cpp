#include <chrono>
#include <cstring>
#include <ctime>

#include "train/checkpoint.h"
#include "train/checkpoint_format.h"
#include "train/checkpoint_hdf5.h"

namespace rowan {
namespace {

std::string now_text() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

int64_t bytes_of(const ArrayRef& array) {
  int64_t bytes = dtype_bytes(array.dtype);
  for (const int64_t d : array.dims) {
    ROWAN_CHECK(d >= 0 && !__builtin_mul_overflow(bytes, d, &bytes), "[checkpoint] ", array.path, " has an impossible shape");
  }
  return bytes;
}

ArrayRef reference(const Tensor& t) {
  ArrayRef ref{.path = {}, .dtype = kRealDType, .dims = {}, .data = t.data()};
  for (int i = 0; i < t.shape().rank(); ++i) ref.dims.push_back(t.shape()[i]);
  return ref;
}
ArrayRef reference(const int64_t& value) {
  return {.path = {}, .dtype = DType::kInt64, .dims = {}, .data = &value};
}
ArrayRef reference(const double& value) {
  return {.path = {}, .dtype = DType::kFloat64, .dims = {}, .data = &value};
}
ArrayRef reference(const std::string& text) {
  return {.path = {}, .dtype = DType::kText, .dims = {static_cast<int64_t>(text.size())}, .data = text.data()};
}
template <class T>
ArrayRef reference(const std::vector<T>& values) {
  constexpr DType kType = std::is_same_v<T, int32_t>   ? DType::kInt32
                          : std::is_same_v<T, int64_t> ? DType::kInt64
                          : std::is_same_v<T, double>  ? DType::kFloat64
                                                       : DType::kUint8;
  return {.path = {}, .dtype = kType, .dims = {static_cast<int64_t>(values.size())}, .data = values.data()};
}

ArrayInfo place(Hdf5Image& image, const ArrayRef& array) {
  ArrayInfo info{
      .path = array.path, .dtype = array.dtype, .dims = array.dims, .offset = 0, .bytes = bytes_of(array), .checksum = {}};
  info.checksum = digest_text(digest_of(array.data, static_cast<size_t>(info.bytes)));
  info.offset = image.dataset(array);
  return info;
}

int64_t step_of(const std::map<std::string, ArrayRef>& arrays) {
  const auto step = arrays.find("/train/step");
  const auto config = arrays.find("/config");
  ROWAN_CHECK(step != arrays.end() && step->second.dtype == DType::kInt64 && bytes_of(step->second) == 8,
              "[checkpoint] /train/step, one int64, is needed");
  ROWAN_CHECK(config != arrays.end() && config->second.dtype == DType::kText, "[checkpoint] /config, text, is needed");
  int64_t value = 0;
  std::memcpy(&value, step->second.data, sizeof value);
  ROWAN_CHECK(value >= 0, "[checkpoint] /train/step is ", value, "; it can't be negative");
  return value;
}

}  // namespace

void CheckpointWriter::add(const ArrayRef& array) {
  ROWAN_CHECK(valid_array_path(array.path), "[checkpoint] '", array.path, "' can't be a path in a checkpoint");
  if (array.dtype == DType::kText && array.dims.at(0) > 0) {
    const std::string_view text(static_cast<const char*>(array.data), static_cast<size_t>(array.dims[0]));
    ROWAN_CHECK(text.find('\0') == std::string_view::npos, "[checkpoint] the text ", array.path, " has a NUL character in it");
  }
  ROWAN_CHECK(arrays_.emplace(array.path, array).second, "[checkpoint] ", array.path, " is added twice");
}

void CheckpointWriter::hold(const std::string& path, Held value) {
  auto held = std::make_unique<Held>(std::move(value));
  ArrayRef ref = std::visit([](const auto& v) { return reference(v); }, *held);
  ref.path = path;
  add(ref);
  held_.push_back(std::move(held));
}

void CheckpointWriter::add(const std::string& path, const Tensor& value) {
  ROWAN_CHECK(!value.empty(), "[checkpoint] the tensor for ", path, " does not exist");
  hold(path, value);
}
void CheckpointWriter::add(const std::string& path, int64_t value) {
  hold(path, value);
}
void CheckpointWriter::add(const std::string& path, double value) {
  hold(path, value);
}
void CheckpointWriter::add(const std::string& path, std::vector<int32_t> values) {
  hold(path, std::move(values));
}
void CheckpointWriter::add(const std::string& path, std::vector<int64_t> values) {
  hold(path, std::move(values));
}
void CheckpointWriter::add(const std::string& path, std::vector<double> values) {
  hold(path, std::move(values));
}
void CheckpointWriter::add(const std::string& path, std::vector<uint8_t> values) {
  hold(path, std::move(values));
}
void CheckpointWriter::add_text(const std::string& path, std::string text) {
  hold(path, std::move(text));
}

CheckpointImage CheckpointWriter::build(CheckpointInfo info) const {
  const int64_t step = step_of(arrays_);
  if (info.created.empty()) info.created = now_text();
  if (info.rowan_version.empty()) info.rowan_version = ROWAN_VERSION;

  for (const auto& [path, array] : arrays_) {
    for (size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) {
      ROWAN_CHECK(!arrays_.contains(path.substr(0, slash)), "[checkpoint] ", path.substr(0, slash), " is an array and a group");
    }
  }
  int64_t expected = 1 << 16;
  for (const auto& [path, array] : arrays_) expected += bytes_of(array) + 1024;  // 1024: its object header, links and index line
  Hdf5Image image(expected);
  image.attribute("format", "rowan");
  image.attribute("version", int64_t{kCheckpointVersion});
  image.attribute("created", info.created);
  image.attribute("rowan_version", info.rowan_version);
  image.attribute("complete", int64_t{info.complete});

  CheckpointIndex index{.info = info, .state_digest = {}, .arrays = {}};
  for (const auto& [path, array] : arrays_) index.arrays.push_back(place(image, array));
  index.state_digest = state_digest_of(index.arrays);
  const std::string text = encode_index(index);
  ArrayRef state = reference(index.state_digest), lines = reference(text);
  state.path = "/digest/state";
  lines.path = "/digest/index";
  image.dataset(state);
  CheckpointHeader header{.index_offset = image.dataset(lines), .index_bytes = static_cast<int64_t>(text.size())};

  Hdf5Image::Finished finished = image.finish();
  header.file_bytes = static_cast<int64_t>(finished.size);
  sign(header, {finished.bytes.get(), finished.size});
  return CheckpointImage(std::move(finished.bytes), finished.size, step, index.state_digest);
}

void publish_checkpoint(const CheckpointImage& image, const std::string& path, IfExists if_exists, FileSystem& files) {
  publish_file(path, image.bytes(), if_exists, files);
}

}  // namespace rowan
