// The parts of a checkpoint file that are ours: the header in the HDF5 user block and the text of /digest/index. Bytes only; no
// files, no HDF5. Everything read is checked before it is used, since a file may come from anywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/checkpoint.h"

namespace rowan {

// Little-endian, at the start of the file:
//   0  8  magic                      40 16  XXH3-128 of the whole file, bytes 40..63 taken as zero
//   8  4  format version             56  8  XXH3-64 of bytes 0..55
//  12  4  header bytes (512)         64     text for people, zeros up to 512
//  16  8  file bytes
//  24  8  offset of the index        Later versions keep bytes 0..15 and 56..63 as they are, so that a reader can tell "newer"
//  32  8  bytes of the index         from "damaged".
struct CheckpointHeader {
  static constexpr size_t kBytes = 512;
  static constexpr size_t kDigestAt = 40;
  static constexpr size_t kDigestEnd = 64;  // digest and header checksum

  uint32_t version = kCheckpointVersion;
  int64_t file_bytes = 0;
  int64_t index_offset = 0;
  int64_t index_bytes = 0;
  Digest digest{};
};

// Writes the header into the first 512 bytes of a finished file, its digest included; header.digest is set by this.
void sign(CheckpointHeader& header, std::span<uint8_t> file);
// `start`: the first min(512, file_bytes) bytes. Errors name `path`.
CheckpointHeader parse_header(std::span<const uint8_t> start, int64_t file_bytes, const std::string& path);

// For telling what is wrong with a file: the header if its own checksum fits, whatever the rest is; and whether a file begins as a
// checkpoint or as bare HDF5 does.
std::optional<CheckpointHeader> peek_header(std::span<const uint8_t> start);
bool has_known_magic(std::span<const uint8_t> start);

// The text of /digest/index: lines "key value" of CheckpointInfo, then one line per array, sorted by path:
//   <checksum> <offset> <bytes> <dtype> <dims> <path>        dims as "scalar" or "(65,128)"
struct CheckpointIndex {
  static constexpr int64_t kLargest = int64_t{64} << 20;  // bytes; room for half a million arrays

  CheckpointInfo info;
  std::string state_digest;
  std::vector<ArrayInfo> arrays;
};

std::string encode_index(const CheckpointIndex& index);
CheckpointIndex parse_index(std::string_view text, int64_t file_bytes, const std::string& path);

// One hash of the training state: XXH3-128 of the lines "<checksum> <dtype> <dims> <path>\n", in order of path, of all arrays under
// /model, /optim, /rng and /loader, and of /train/step. Not in it: config, tokenizer, logs, best loss, places in the file.
std::string state_digest_of(const std::vector<ArrayInfo>& arrays);

// Whether a path may stand in a checkpoint: /<group>/<name>[/<name>...] of a known group, up to 4 names of printable ASCII.
bool valid_array_path(std::string_view path);

}  // namespace rowan
