#include <algorithm>
#include <cstring>

#include "train/checkpoint.h"
#include "train/checkpoint_format.h"

namespace rowan {
namespace {

constexpr size_t kPiece = size_t{4} << 20;

Digest digest_of_file(const File& file, int64_t bytes) {
  Digester digester;
  std::vector<uint8_t> piece(static_cast<size_t>(std::min<int64_t>(bytes, kPiece)));
  for (int64_t at = 0; at < bytes; at += static_cast<int64_t>(kPiece)) {
    const auto n = static_cast<size_t>(std::min<int64_t>(bytes - at, kPiece));
    file.read(at, piece.data(), n);
    if (at == 0) std::fill(piece.begin() + CheckpointHeader::kDigestAt, piece.begin() + CheckpointHeader::kDigestEnd, uint8_t{0});
    digester.update(piece.data(), n);
  }
  return digester.value();
}

std::string dims_text(const std::vector<int64_t>& dims) {
  return ArrayInfo{.path = {}, .dims = dims, .checksum = {}}.shape_text();
}

bool under(const std::string& path, const std::string& group) {
  return path.starts_with(group) && (path.size() == group.size() || path[group.size()] == '/' || group.back() == '/');
}

Shape shape_of(const std::vector<int64_t>& dims) {
  Shape shape;
  for (const int64_t d : dims) shape.append(d);
  return shape;
}

}  // namespace

Checkpoint Checkpoint::open(const std::string& path, FileSystem& files) {
  Checkpoint checkpoint(File::open(path, files));
  const File& file = checkpoint.file_;
  const int64_t size = file.size();
  std::vector<uint8_t> start(static_cast<size_t>(std::min<int64_t>(size, CheckpointHeader::kBytes)));
  file.read(0, start.data(), start.size());
  const CheckpointHeader header = parse_header(start, size, path);
  if (digest_of_file(file, size) != header.digest) {
    throw Error("[checkpoint] '" + path + "' is damaged or was edited: its bytes do not have the digest that its header says",
                ErrorKind::kData, "if you edited it on purpose, `rowan convert IN OUT` checks it and signs it anew");
  }
  std::string text(static_cast<size_t>(header.index_bytes), '\0');
  file.read(header.index_offset, text.data(), text.size());
  CheckpointIndex index = parse_index(text, size, path);
  checkpoint.file_bytes_ = size;
  checkpoint.info_ = std::move(index.info);
  checkpoint.state_digest_ = std::move(index.state_digest);
  checkpoint.arrays_ = std::move(index.arrays);
  return checkpoint;
}

const ArrayInfo* Checkpoint::find(const std::string& path) const {
  const auto it =
      std::lower_bound(arrays_.begin(), arrays_.end(), path, [](const ArrayInfo& a, const std::string& p) { return a.path < p; });
  return it != arrays_.end() && it->path == path ? &*it : nullptr;
}

void Checkpoint::read(const ArrayInfo& array, void* data) const {
  file_.read(array.offset, data, static_cast<size_t>(array.bytes));
  if (digest_text(digest_of(data, static_cast<size_t>(array.bytes))) != array.checksum) {
    fail_data("[checkpoint] ", array.path, " in '", path(), "' is damaged: its checksum does not fit");
  }
}

// --- reading by name

const ArrayInfo& Checkpoint::require(const std::string& path, DType dtype, bool scalar) const {
  const ArrayInfo* array = find(path);
  if (array == nullptr) fail_data("[checkpoint] '", file_.path(), "' has no ", path);
  if (array->dtype != dtype || (scalar && array->bytes != dtype_bytes(dtype))) {
    fail_data("[checkpoint] ", path, " in '", file_.path(), "' is ", array->shape_text(), " of ", dtype_name(array->dtype), "; ",
              scalar ? "one " : "an array of ", dtype_name(dtype), " was expected");
  }
  return *array;
}

int64_t Checkpoint::integer(const std::string& path) const {
  int64_t value = 0;
  read(require(path, DType::kInt64, true), &value);
  return value;
}
double Checkpoint::number(const std::string& path) const {
  double value = 0;
  read(require(path, DType::kFloat64, true), &value);
  return value;
}
std::string Checkpoint::text(const std::string& path) const {
  const ArrayInfo& array = require(path, DType::kText, false);
  std::string value(static_cast<size_t>(array.bytes), '\0');
  read(array, value.data());
  return value;
}
std::vector<uint8_t> Checkpoint::blob(const std::string& path) const {
  const ArrayInfo& array = require(path, DType::kUint8, false);
  std::vector<uint8_t> value(static_cast<size_t>(array.bytes));
  read(array, value.data());
  return value;
}

// --- strict reading

const ArrayInfo* Checkpoint::expect(const std::string& path, DType dtype, const std::vector<int64_t>* dims) {
  taken_.insert(path);
  const ArrayInfo* array = find(path);
  const std::string wanted = (dims ? dims_text(*dims) + " of " : std::string()) + dtype_name(dtype);
  if (array == nullptr) {
    missing_.push_back(path + " " + wanted);
    return nullptr;
  }
  const bool real = dtype == kRealDType && (array->dtype == DType::kFloat32 || array->dtype == DType::kFloat64);
  if (real && array->dtype != dtype && !path.starts_with("/train/")) other_real_ = true;
  if (array->dtype != dtype || (dims != nullptr && array->dims != *dims)) {
    misfits_.push_back(path + " is " + array->shape_text() + " of " + dtype_name(array->dtype) + ", expected " + wanted);
    return nullptr;
  }
  return array;
}

void Checkpoint::take(const std::string& path, Tensor& value) {
  const ArrayInfo* array = expect(path, kRealDType, nullptr);
  if (array == nullptr) return;
  if (array->dims.size() > Shape::kMaxRank) {
    misfits_.push_back(path + " is " + array->shape_text() + ", expected at most 4 dimensions");
    return;
  }
  const Shape shape = shape_of(array->dims);
  if (value.empty() || !(value.shape() == shape)) value = Tensor(shape);
  read(*array, value.data());
}

void Checkpoint::take_shaped(const std::string& path, Tensor& value) {
  std::vector<int64_t> dims;
  for (int i = 0; i < value.shape().rank(); ++i) dims.push_back(value.shape()[i]);
  if (const ArrayInfo* array = expect(path, kRealDType, &dims)) read(*array, value.data());
}

void Checkpoint::take(const std::string& path, int64_t& value) {
  static const std::vector<int64_t> kScalar;
  if (const ArrayInfo* array = expect(path, DType::kInt64, &kScalar)) read(*array, &value);
}
void Checkpoint::take(const std::string& path, double& value) {
  static const std::vector<int64_t> kScalar;
  if (const ArrayInfo* array = expect(path, DType::kFloat64, &kScalar)) read(*array, &value);
}

template <class T>
void Checkpoint::take_vector(const std::string& path, DType dtype, std::vector<T>& value) {
  const ArrayInfo* array = expect(path, dtype, nullptr);
  if (array == nullptr) return;
  if (array->dims.size() != 1) {
    misfits_.push_back(path + " is " + array->shape_text() + ", expected one dimension");
    return;
  }
  std::vector<T> values(static_cast<size_t>(array->dims[0]));
  read(*array, values.data());
  value = std::move(values);
}
void Checkpoint::take(const std::string& path, std::vector<int32_t>& value) {
  take_vector(path, DType::kInt32, value);
}
void Checkpoint::take(const std::string& path, std::vector<int64_t>& value) {
  take_vector(path, DType::kInt64, value);
}
void Checkpoint::take(const std::string& path, std::vector<double>& value) {
  take_vector(path, DType::kFloat64, value);
}
void Checkpoint::take(const std::string& path, std::vector<uint8_t>& value) {
  take_vector(path, DType::kUint8, value);
}

void Checkpoint::take_text(const std::string& path, std::string& value) {
  if (expect(path, DType::kText, nullptr) != nullptr) value = text(path);
}

void Checkpoint::finish(const std::vector<std::string>& groups) const {
  std::vector<std::string> problems;
  for (const std::string& m : missing_) problems.push_back("missing: " + m);
  for (const std::string& m : misfits_) problems.push_back("misfit: " + m);
  for (const ArrayInfo& a : arrays_) {
    const bool asked = groups.empty() || std::any_of(groups.begin(), groups.end(), [&](const auto& g) { return under(a.path, g); });
    if (asked && !taken_.contains(a.path))
      problems.push_back("extra: " + a.path + " " + a.shape_text() + " of " + dtype_name(a.dtype));
  }
  if (problems.empty()) return;
  std::string message =
      join_text("[checkpoint] '", path(), "' does not fit, ", problems.size(), problems.size() == 1 ? " problem: " : " problems: ");
  for (size_t i = 0; i < problems.size(); ++i) message += (i ? "; " : "") + problems[i];
  std::string hint;
  if (other_real_) {
    hint = kRealIsDouble ? "an ordinary build (Real = float) wrote it; this is the gradcheck build (Real = double)"
                         : "the gradcheck build (Real = double) wrote it; this is an ordinary build (Real = float)";
  }
  throw Error(message, ErrorKind::kData, hint);
}

}  // namespace rowan
