// publish_file(): see train/file.h for what it promises.
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "train/file.h"
#include "train/temporary_file.h"

namespace rowan {
namespace {

constexpr int kTries = 3;
constexpr size_t kCompareBytes = size_t{1} << 20;

void reserve(File& file, std::span<const uint8_t> bytes, FileSystem& files) {
  if (bytes.empty()) return;
  const int result = again([&] { return files.reserve(file.descriptor(), static_cast<int64_t>(bytes.size())); });
  // Not every file system can; the write will tell.
  if (result != 0 && errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL) {
    fail_file("reserve space for", file.path(), errno, static_cast<int64_t>(bytes.size()));
  }
}

void compare(const std::string& path, std::span<const uint8_t> bytes, FileSystem& files) {
  const File file = File::open(path, files);
  files.drop_cache(file.descriptor());  // a hint: what is compared should come from the device
  if (file.size() != static_cast<int64_t>(bytes.size())) {
    fail_data("[file] '", path, "' has ", file.size(), " bytes after ", bytes.size(), " were written");
  }
  std::vector<uint8_t> piece(std::min(kCompareBytes, bytes.size()));
  for (size_t at = 0; at < bytes.size(); at += kCompareBytes) {
    const size_t n = std::min(kCompareBytes, bytes.size() - at);
    file.read(static_cast<int64_t>(at), piece.data(), n);
    if (std::memcmp(piece.data(), bytes.data() + at, n) != 0) {
      fail_data("[file] '", path, "' differs from what was written when read back, within ", n, " bytes from ", at,
                ": the device or the memory is faulty");
    }
  }
}

// Whether a new file may succeed where this one failed.
bool worth_another_try(int code) {
  switch (code) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EROFS:
    case EACCES:
    case EPERM:  // clang-format off: one list
    case EEXIST:
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
    case ENAMETOOLONG:
    case EINVAL:  // clang-format on
      return false;
    default:
      return true;
  }
}

void publish_once(const std::string& path, std::span<const uint8_t> bytes, IfExists if_exists, FileSystem& files) {
  TemporaryFile temporary(path, files);
  reserve(temporary.file(), bytes, files);
  temporary.file().write(0, bytes.data(), bytes.size());
  temporary.file().sync();
  temporary.file().close();
  compare(temporary.path(), bytes, files);
  temporary.rename(if_exists);
}

}  // namespace

void publish_file(const std::string& path, std::span<const uint8_t> bytes, IfExists if_exists, FileSystem& files) {
  if (if_exists == IfExists::kRefuse && file_exists(path, files)) fail_file("publish", path, EEXIST);
  for (int attempt = 1;; ++attempt) {
    try {
      publish_once(path, bytes, if_exists, files);
      break;
    } catch (const FileError& e) {
      if (attempt == kTries || !worth_another_try(e.code())) throw;
    } catch (const Error&) {  // it did not read back as written
      if (attempt == kTries) throw;
    }
  }
  sync_directory(parent_directory(path), files);
}

void publish_text(const std::string& path, std::string_view text, IfExists if_exists, FileSystem& files) {
  publish_file(path, {reinterpret_cast<const uint8_t*>(text.data()), text.size()}, if_exists, files);
}

void publish_link(const std::string& path, const std::string& link, FileSystem& files) {
  const std::string stem = join_path(parent_directory(link), std::string(kTemporaryPrefix) + std::to_string(getpid()) + "-link");
  remove_file(stem, files);
  if (again([&] { return files.link(path, stem); }) == 0) {
    if (again([&] { return files.rename(stem, link); }) != 0) {
      const int code = errno;
      files.unlink(stem);
      fail_file("rename '" + stem + "' to", link, code);
    }
    files.unlink(stem);  // rename() does nothing, successfully, when both names are the same file already
    sync_directory(parent_directory(link), files);
    return;
  }
  if (errno != EPERM && errno != EOPNOTSUPP && errno != EMLINK && errno != EXDEV && errno != ENOSYS) {
    fail_file("link '" + path + "' to", link, errno);
  }
  const File file = File::open(path, files);
  std::vector<uint8_t> bytes(static_cast<size_t>(file.size()));
  file.read(0, bytes.data(), bytes.size());
  publish_file(link, bytes, IfExists::kReplace, files);
}

}  // namespace rowan
