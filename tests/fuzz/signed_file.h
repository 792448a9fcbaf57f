// Checkpoint files whose checksums all fit, whatever is in them: what somebody could make who knows the format.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "train/checkpoint.h"
#include "train/checkpoint_format.h"

namespace rowan::fuzz {

struct LooseArray {
  DType dtype = DType::kUint8;
  std::vector<int64_t> dims;
  std::vector<uint8_t> bytes;  // need not be what dims say
};
using LooseState = std::map<std::string, LooseArray>;  // by path

inline LooseState loose_state(const Checkpoint& checkpoint) {
  LooseState state;
  for (const ArrayInfo& info : checkpoint.arrays()) {
    LooseArray array{info.dtype, info.dims, std::vector<uint8_t>(static_cast<size_t>(info.bytes))};
    checkpoint.read(info, array.bytes.data());
    state[info.path] = std::move(array);
  }
  return state;
}

// Header, data, index. The HDF5 structures are left out: the loader takes no notice of them.
inline std::vector<uint8_t> signed_file(const std::vector<uint8_t>& data, std::string_view index) {
  std::vector<uint8_t> file(CheckpointHeader::kBytes);
  file.insert(file.end(), data.begin(), data.end());
  CheckpointHeader header{.index_offset = static_cast<int64_t>(file.size()), .index_bytes = static_cast<int64_t>(index.size())};
  file.insert(file.end(), index.begin(), index.end());
  header.file_bytes = static_cast<int64_t>(file.size());
  sign(header, file);
  return file;
}

inline std::vector<uint8_t> signed_file(const LooseState& state) {
  CheckpointIndex index{.info = {.created = "2025-01-31T00:00:00Z", .rowan_version = "0.1.0"}, .state_digest = {}, .arrays = {}};
  std::vector<uint8_t> data;
  for (const auto& [path, array] : state) {
    ArrayInfo info{.path = path, .dtype = array.dtype, .dims = array.dims, .checksum = {}};
    info.offset = static_cast<int64_t>(CheckpointHeader::kBytes + data.size());
    info.bytes = static_cast<int64_t>(array.bytes.size());
    info.checksum = digest_text(digest_of(array.bytes.data(), array.bytes.size()));
    data.insert(data.end(), array.bytes.begin(), array.bytes.end());
    index.arrays.push_back(std::move(info));
  }
  index.state_digest = state_digest_of(index.arrays);
  return signed_file(data, encode_index(index));
}

}  // namespace rowan::fuzz
