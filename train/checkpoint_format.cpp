#include "train/checkpoint_format.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

namespace rowan {
namespace {

static_assert(std::endian::native == std::endian::little, "checkpoints are little-endian and are read without conversion");

constexpr uint8_t kMagic[8] = {0x89, 'R', 'O', 'W', 'A', 'N', '\r', '\n'};  // as PNG's: shows transfers that "mend" text
constexpr uint8_t kHdf5Magic[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
constexpr char kNote[] =
    "Rowan checkpoint. After these 512 bytes (an HDF5 user block) follows HDF5: read it with h5py, h5dump or h5wasm. "
    "An edited file has to be signed anew: rowan convert IN OUT\n";
constexpr size_t kNoteAt = 64;
constexpr size_t kHeaderSumAt = 56;
static_assert(kNoteAt + sizeof(kNote) <= CheckpointHeader::kBytes);

template <class T>
void put(std::span<uint8_t> bytes, size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}
template <class T>
T get(std::span<const uint8_t> bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

CheckpointHeader decode(std::span<const uint8_t> start) {
  CheckpointHeader header;
  header.file_bytes = get<int64_t>(start, 16);
  header.index_offset = get<int64_t>(start, 24);
  header.index_bytes = get<int64_t>(start, 32);
  std::copy_n(start.begin() + CheckpointHeader::kDigestAt, header.digest.size(), header.digest.begin());
  header.version = get<uint32_t>(start, 8);
  return header;
}

[[noreturn]] void fail_foreign(std::span<const uint8_t> start, const std::string& path) {
  if (start.empty()) throw Error("[checkpoint] '" + path + "' is empty", ErrorKind::kData);
  if (start.size() >= 8 && std::equal(kHdf5Magic, kHdf5Magic + 8, start.begin())) {
    throw Error("[checkpoint] '" + path + "' is an HDF5 file, but Rowan did not write it: it has no header and no checksum",
                ErrorKind::kData,
                "if it has a checkpoint's structure (docs/CHECKPOINT.md), `rowan convert IN OUT` checks and signs it");
  }
  throw Error("[checkpoint] '" + path + "' is not a Rowan checkpoint: it does not begin with one's header", ErrorKind::kData);
}

}  // namespace

void sign(CheckpointHeader& header, std::span<uint8_t> file) {
  ROWAN_ASSERT(file.size() >= CheckpointHeader::kBytes);
  std::fill_n(file.begin(), CheckpointHeader::kBytes, uint8_t{0});
  std::copy(kMagic, kMagic + 8, file.begin());
  put(file, 8, kCheckpointVersion);
  put(file, 12, static_cast<uint32_t>(CheckpointHeader::kBytes));
  put(file, 16, header.file_bytes);
  put(file, 24, header.index_offset);
  put(file, 32, header.index_bytes);
  std::memcpy(file.data() + kNoteAt, kNote, sizeof kNote - 1);
  header.digest = digest_of(file.data(), file.size());  // its own place and the header's checksum are still zero
  std::copy(header.digest.begin(), header.digest.end(), file.begin() + CheckpointHeader::kDigestAt);
  put(file, kHeaderSumAt, hash64(file.data(), kHeaderSumAt));
}

bool has_known_magic(std::span<const uint8_t> start) {
  return start.size() >= 8 &&
         (std::equal(kMagic, kMagic + 8, start.begin()) || std::equal(kHdf5Magic, kHdf5Magic + 8, start.begin()));
}

std::optional<CheckpointHeader> peek_header(std::span<const uint8_t> start) {
  if (start.size() < CheckpointHeader::kBytes || !std::equal(kMagic, kMagic + 8, start.begin()) ||
      get<uint64_t>(start, kHeaderSumAt) != hash64(start.data(), kHeaderSumAt)) {
    return std::nullopt;
  }
  return decode(start);
}

CheckpointHeader parse_header(std::span<const uint8_t> start, int64_t file_bytes, const std::string& path) {
  const size_t common = std::min<size_t>(start.size(), 8);
  if (common == 0 || !std::equal(kMagic, kMagic + common, start.begin())) fail_foreign(start, path);
  if (start.size() < CheckpointHeader::kBytes) {
    fail_data("[checkpoint] '", path, "' is cut off within its header: ", file_bytes, " bytes");
  }
  if (get<uint64_t>(start, kHeaderSumAt) != hash64(start.data(), kHeaderSumAt)) {
    fail_data("[checkpoint] the header of '", path, "' is damaged: its checksum does not fit");
  }
  const CheckpointHeader header = decode(start);
  const uint32_t version = header.version;
  if (version > kCheckpointVersion) {
    throw NewerFormat(join_text("[checkpoint] '", path, "' has format version ", version,
                                "; this program (Rowan " ROWAN_VERSION ") knows versions up to ", kCheckpointVersion),
                      ErrorKind::kData, "read it with a newer Rowan");
  }
  if (file_bytes != header.file_bytes) {
    const bool cut = file_bytes < header.file_bytes;
    throw Error(join_text("[checkpoint] '", path, "' has ", file_bytes, " bytes where its header says ", header.file_bytes, ": it ",
                          cut ? "is cut off" : "grew after it was written"),
                ErrorKind::kData, cut ? "" : "if you edited it on purpose, `rowan convert IN OUT` checks it and signs it anew");
  }
  const auto end = static_cast<int64_t>(CheckpointHeader::kBytes);
  if (version == 0 || get<uint32_t>(start, 12) != CheckpointHeader::kBytes || header.index_bytes < 0 ||
      header.index_bytes > CheckpointIndex::kLargest || header.index_offset < end ||
      header.index_offset > file_bytes - header.index_bytes) {
    fail_data("[checkpoint] the header of '", path, "' makes no sense: version ", version, ", index of ", header.index_bytes,
              " bytes at ", header.index_offset);
  }
  return header;
}

const char* dtype_name(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "float32";
    case DType::kFloat64:
      return "float64";
    case DType::kInt32:
      return "int32";
    case DType::kInt64:
      return "int64";
    case DType::kUint8:
      return "uint8";
    case DType::kText:
      return "text";
  }
  return "?";
}

int64_t dtype_bytes(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
    case DType::kInt32:
      return 4;
    case DType::kFloat64:
    case DType::kInt64:
      return 8;
    case DType::kUint8:
    case DType::kText:
      return 1;
  }
  return 0;
}

std::string ArrayInfo::shape_text() const {
  if (dims.empty()) return "scalar";
  std::string text;
  for (const int64_t d : dims) text.append(text.empty() ? "(" : ",").append(std::to_string(d));
  return text.append(")");
}

bool valid_array_path(std::string_view path) {
  if (path == "/config" || path == "/tokenizer") return true;  // one dataset each; the tokenizer may be a group, too
  static constexpr std::string_view kGroups[] = {"/model/", "/optim/", "/train/", "/rng/", "/loader/", "/tokenizer/"};
  if (std::none_of(std::begin(kGroups), std::end(kGroups), [&](std::string_view g) { return path.starts_with(g); })) return false;
  if (path.size() > 1024) return false;
  int names = 0;
  for (size_t at = 0; at < path.size(); ++names) {
    const size_t end = std::min(path.find('/', at + 1), path.size());
    const std::string_view name = path.substr(at + 1, end - at - 1);
    if (path[at] != '/' || name.empty() || name == "." || name == ".." || names == 4) return false;
    if (!std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c < 0x7f; })) return false;
    at = end;
  }
  return true;
}

}  // namespace rowan
