// verify_checkpoint(): what is wrong, and where, in a file that Checkpoint::open() refuses.
#include <algorithm>

#include "train/checkpoint.h"
#include "train/checkpoint_format.h"

namespace rowan {
namespace {

constexpr size_t kPiece = size_t{1} << 20;

std::string checksum_in_file(const File& file, const ArrayInfo& array) {
  Digester digester;
  std::vector<uint8_t> piece(static_cast<size_t>(std::min<int64_t>(array.bytes, kPiece)));
  for (int64_t at = 0; at < array.bytes; at += static_cast<int64_t>(kPiece)) {
    const auto n = static_cast<size_t>(std::min<int64_t>(array.bytes - at, kPiece));
    file.read(array.offset + at, piece.data(), n);
    digester.update(piece.data(), n);
  }
  return digester.text();
}

void locate_damage(const File& file, VerifyReport& report) {
  const int64_t size = file.size();
  std::vector<uint8_t> start(static_cast<size_t>(std::min<int64_t>(size, CheckpointHeader::kBytes)));
  file.read(0, start.data(), start.size());
  report.may_be_edited = has_known_magic(start);
  const std::optional<CheckpointHeader> header = peek_header(start);
  if (!header) return;
  report.may_be_edited = header->version <= kCheckpointVersion;
  const bool inside = header->index_offset >= 0 && header->index_bytes >= 0 && header->index_bytes <= CheckpointIndex::kLargest &&
                      header->index_bytes <= size && header->index_offset <= size - header->index_bytes;
  if (header->version != kCheckpointVersion || !inside) return;
  std::string text(static_cast<size_t>(header->index_bytes), '\0');
  file.read(header->index_offset, text.data(), text.size());
  report.arrays = parse_index(text, size, file.path()).arrays;
  for (const ArrayInfo& a : report.arrays) {
    if (checksum_in_file(file, a) != a.checksum) report.damaged.push_back(a.path);
  }
}

}  // namespace

VerifyReport verify_checkpoint(const std::string& path, FileSystem& files) {
  VerifyReport report;
  try {
    report.arrays = Checkpoint::open(path, files).arrays();
    return report;
  } catch (const Error& e) {
    report.problem = e.what();
  }
  try {
    locate_damage(File::open(path, files), report);
  } catch (const Error&) {
    // The index itself is damaged, or the file can't be read: the problem above is all that can be said.
  }
  return report;
}

}  // namespace rowan
