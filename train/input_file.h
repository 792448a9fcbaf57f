// InputFile: a regular file, open for reading at any offset. Every failure is an Error (data) with the path and the system's
// reason.
//
// Reads go through pread into the caller's memory, never through a mapping: a file that is cut short while it is in use gives an
// Error here, where a mapping gives SIGBUS, and no check before the access closes that race. The page cache serves both alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace rowan {

class InputFile {
 public:
  explicit InputFile(const std::string& path);  // a directory, pipe or device is refused by name
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  int64_t size() const { return size_; }  // bytes, when it was opened
  // Fills `out` from `offset` on. Error when the file ends before.
  void read(int64_t offset, std::span<std::byte> out) const;
  // As much as there is, up to out.size(); 0 at the end.
  size_t read_some(int64_t offset, std::span<std::byte> out) const;

 private:
  std::string path_;
  int fd_ = -1;
  int64_t size_ = 0;
};

// Gives the whole file to take(piece, offset of piece) in pieces of at most 1 MiB that do not end inside a UTF-8 character, unless
// the file itself does. Returns the bytes read. The file may be longer than memory.
int64_t read_pieces(const std::string& path, const std::function<void(std::string_view, int64_t)>& take);

// All of a small file. Error when it is larger than max_bytes.
std::string read_small_file(const std::string& path, int64_t max_bytes);

}  // namespace rowan
