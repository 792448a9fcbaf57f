// verify_checkpoint(): what is wrong, and where, in a file that Checkpoint::open() refuses.
#include <algorithm>
#include <cerrno>

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

// Whether an error tells of the file's content, and not of the way to it.
bool is_damage(const Error& error) {
  if (dynamic_cast<const NewerFormat*>(&error) != nullptr) return false;
  const auto* of_system = dynamic_cast<const FileError*>(&error);
  return of_system == nullptr || of_system->code() == EIO;
}

// What stands in the way of any file being there to read; "" when nothing does.
std::string why_no_file(const std::string& path, FileSystem& files) {
  try {
    File::open(path, files);
    return "";
  } catch (const FileError& e) {
    return e.code() == EIO ? "" : e.what();
  } catch (const Error& e) {  // a directory, a device
    return e.what();
  }
}

}  // namespace

VerifyReport verify_checkpoint(const std::string& path, FileSystem& files) {
  VerifyReport report;
  report.problem = why_no_file(path, files);
  report.unreadable = !report.problem.empty();
  if (report.unreadable) return report;
  try {
    report.arrays = Checkpoint::open(path, files).arrays();
    return report;
  } catch (const Error& e) {
    report.problem = e.what();
    report.unreadable = !is_damage(e);
  }
  if (report.unreadable) return report;
  try {
    locate_damage(File::open(path, files), report);
  } catch (const Error&) {
    // The index itself is damaged: the problem above is all that can be said.
  }
  return report;
}

}  // namespace rowan
