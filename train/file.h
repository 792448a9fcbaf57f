// Files: opening, whole reads and writes, and publication. All through FileSystem; every failure is an Error of kind kData that
// names the path and the system's reason, and for a full device or quota how much was needed and how much is free.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "train/file_system.h"

namespace rowan {

// An Error from the system, with errno.
class FileError : public Error {
 public:
  FileError(const std::string& message, int code, std::string hint)
      : Error(message, ErrorKind::kData, std::move(hint)), code_(code) {}
  int code() const { return code_; }

 private:
  int code_;
};

// An open regular file. Interrupted and short calls are carried on; a file that ends early is an Error.
class File {
 public:
  static File open(const std::string& path, FileSystem& files = system_files());    // to read; not a folder, a device or a pipe
  static File create(const std::string& path, FileSystem& files = system_files());  // to read and write; must not exist
  static File append(const std::string& path, FileSystem& files = system_files());  // made when missing
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  const std::string& path() const { return path_; }
  int64_t size() const;
  void read(int64_t offset, void* data, size_t bytes) const;
  void write(int64_t offset, const void* data, size_t bytes);
  void write_end(std::string_view text);  // one write at the end for a file opened by append()
  void sync();                            // fsync
  void truncate(int64_t bytes);
  void close();  // a failure that the system kept until now is an Error
  int descriptor() const { return fd_; }

 private:
  File(std::string path, int fd, FileSystem& files) : path_(std::move(path)), fd_(fd), files_(&files) {}

  std::string path_;
  int fd_ = -1;
  FileSystem* files_;
};

// The whole of a file of at most `limit` bytes. Memory is taken for its real size, which must not change meanwhile.
std::string read_text(const std::string& path, int64_t limit, FileSystem& files = system_files());

enum class IfExists { kRefuse, kReplace };

// Makes `path` appear with these bytes, or not at all: written to a temporary file in the same folder, flushed to the device, read
// back and compared, renamed, and the folder flushed. Until the rename nothing that existed has changed. A try that failed for a
// reason that may pass (an I/O error, a difference when read back) is repeated from the start with a new file, three times in all:
// a file whose fsync failed is never trusted again. When only the last flush of the folder fails the file stands and is whole, but
// may not survive a power failure: that is an Error too.
void publish_file(const std::string& path, std::span<const uint8_t> bytes, IfExists if_exists, FileSystem& files = system_files());
void publish_text(const std::string& path, std::string_view text, IfExists if_exists, FileSystem& files = system_files());

// Hard link at `link` to the content of `path`, replacing what stands there in one step; a copy where links are not possible.
void publish_link(const std::string& path, const std::string& link, FileSystem& files = system_files());

// Every name that publication leaves behind when its process dies begins so.
inline constexpr std::string_view kTemporaryPrefix = ".tmp-";

bool file_exists(const std::string& path, FileSystem& files = system_files());
bool directory_exists(const std::string& path, FileSystem& files = system_files());
void make_directories(const std::string& path, FileSystem& files = system_files());                    // and its parents
std::vector<std::string> list_directory(const std::string& path, FileSystem& files = system_files());  // sorted
void remove_file(const std::string& path, FileSystem& files = system_files());                         // missing: fine
void rename_without_replacing(const std::string& from, const std::string& to, FileSystem& files = system_files());
void sync_directory(const std::string& path, FileSystem& files = system_files());
std::string parent_directory(const std::string& path);  // "." for a bare name
std::string join_path(const std::string& directory, const std::string& name);

// Throws FileError: "[file] cannot <action> '<path>': No space left on device (ENOSPC); ...". `needed` in bytes, when known.
[[noreturn]] void fail_file(const std::string& action, const std::string& path, int code, int64_t needed = -1);

}  // namespace rowan
