#include "train/file.h"

#include <fcntl.h>
#include <string.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>

namespace rowan {
namespace {

// One call carries at most this much: large enough to cost nothing, small enough for every file system's limit on a single call.
constexpr size_t kLargestCall = size_t{64} << 20;

std::string reason(int code) {
  const char* text = strerrordesc_np(code);
  const char* name = strerrorname_np(code);
  return join_text(text ? text : "unknown error", " (", name ? name : std::to_string(code), ")");
}

}  // namespace

void fail_file(const std::string& action, const std::string& path, int code, int64_t needed) {
  std::string message = join_text("[file] cannot ", action, " '", path, "': ", reason(code));
  std::string hint;
  if (code == ENOSPC || code == EDQUOT) {
    const std::string folder = parent_directory(path);
    struct statvfs space {};
    if (needed >= 0) message += join_text("; ", needed, " bytes needed");
    if (statvfs(folder.c_str(), &space) == 0) {
      message += join_text(needed >= 0 ? ", " : "; ", uint64_t{space.f_bavail} * space.f_frsize, " free in '", folder, "'");
    }
    hint =
        code == ENOSPC ? "make room on the device, or write to another one" : "your quota is used up: remove files or ask for more";
  }
  if (code == EEXIST) hint = "nothing is overwritten: choose another name, or remove what is there";
  throw FileError(message, code, hint);
}

File::File(File&& other) noexcept : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), files_(other.files_) {}

File& File::operator=(File&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(files_, other.files_);
  return *this;
}

File::~File() {
  if (fd_ != -1) files_->close(fd_);  // what a failure here could lose, sync() or close() has reported
}

File File::open(const std::string& path, FileSystem& files) {
  // Without O_NONBLOCK, opening a pipe would wait for its writer.
  const int fd = again([&] { return files.open(path, O_RDONLY | O_NONBLOCK, 0); });
  if (fd == -1) fail_file("open", path, errno);
  File file(path, fd, files);
  struct stat status {};
  if (again([&] { return files.status(fd, status); }) != 0) fail_file("look at", path, errno);
  if (S_ISDIR(status.st_mode)) fail_data("[file] '", path, "' is a directory; a file was expected");
  if (!S_ISREG(status.st_mode)) fail_data("[file] '", path, "' is not a regular file (a device, a pipe or a socket)");
  return file;
}

File File::create(const std::string& path, FileSystem& files) {
  const int fd = again([&] { return files.open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0666); });
  if (fd == -1) fail_file("create", path, errno);
  return File(path, fd, files);
}

File File::append(const std::string& path, FileSystem& files) {
  const int fd = again([&] { return files.open(path, O_RDWR | O_CREAT | O_APPEND, 0666); });
  if (fd == -1) fail_file("open", path, errno);
  return File(path, fd, files);
}

int64_t File::size() const {
  struct stat status {};
  if (again([&] { return files_->status(fd_, status); }) != 0) fail_file("look at", path_, errno);
  return status.st_size;
}

void File::read(int64_t offset, void* data, size_t bytes) const {
  auto* out = static_cast<uint8_t*>(data);
  while (bytes > 0) {
    const ssize_t got = again([&] { return files_->pread(fd_, out, std::min(bytes, kLargestCall), offset); });
    if (got == -1) fail_file("read", path_, errno);
    if (got == 0)
      fail_data("[file] '", path_, "' ends at byte ", offset, "; ", bytes, " more were expected: it is cut off or shrank");
    out += got;
    offset += got;
    bytes -= static_cast<size_t>(got);
  }
}

void File::write(int64_t offset, const void* data, size_t bytes) {
  const auto* from = static_cast<const uint8_t*>(data);
  while (bytes > 0) {
    const ssize_t done = again([&] { return files_->pwrite(fd_, from, std::min(bytes, kLargestCall), offset); });
    if (done == -1) fail_file("write", path_, errno, static_cast<int64_t>(bytes));
    if (done == 0) fail_file("write", path_, EIO, static_cast<int64_t>(bytes));  // no progress and no reason given
    from += done;
    offset += done;
    bytes -= static_cast<size_t>(done);
  }
}

void File::write_end(std::string_view text) {
  const char* from = text.data();
  size_t bytes = text.size();
  while (bytes > 0) {
    const ssize_t done = again([&] { return files_->write(fd_, from, std::min(bytes, kLargestCall)); });
    if (done == -1) fail_file("write", path_, errno, static_cast<int64_t>(bytes));
    if (done == 0) fail_file("write", path_, EIO, static_cast<int64_t>(bytes));
    from += done;
    bytes -= static_cast<size_t>(done);
  }
}

void File::sync() {
  if (again([&] { return files_->fsync(fd_); }) != 0) fail_file("flush", path_, errno);
}

void File::truncate(int64_t bytes) {
  if (again([&] { return files_->truncate(fd_, bytes); }) != 0) fail_file("cut", path_, errno);
}

void File::close() {
  // After EINTR Linux has closed the descriptor: closing it again could hit another file's.
  if (files_->close(std::exchange(fd_, -1)) != 0 && errno != EINTR) fail_file("close", path_, errno);
}

std::string read_text(const std::string& path, int64_t limit, FileSystem& files) {
  const File file = File::open(path, files);
  const int64_t size = file.size();
  if (size > limit) fail_data("[file] '", path, "' has ", size, " bytes; at most ", limit, " are read");
  std::string text(static_cast<size_t>(size), '\0');
  file.read(0, text.data(), text.size());
  return text;
}

bool file_exists(const std::string& path, FileSystem& files) {
  const int fd = again([&] { return files.open(path, O_PATH, 0); });
  if (fd == -1 && errno != ENOENT && errno != ENOTDIR) fail_file("look for", path, errno);
  if (fd != -1) files.close(fd);
  return fd != -1;
}

bool directory_exists(const std::string& path, FileSystem& files) {
  const int fd = again([&] { return files.open(path, O_PATH | O_DIRECTORY, 0); });
  if (fd == -1 && errno != ENOENT && errno != ENOTDIR) fail_file("look for", path, errno);
  if (fd != -1) files.close(fd);
  return fd != -1;
}

void make_directories(const std::string& path, FileSystem& files) {
  if (directory_exists(path, files)) return;
  const std::string parent = parent_directory(path);
  if (parent != path) make_directories(parent, files);
  if (again([&] { return files.make_directory(path); }) != 0) {
    const int code = errno;
    if (code != EEXIST || !directory_exists(path, files)) fail_file("make directory", path, code);
    return;  // somebody was faster
  }
  sync_directory(parent, files);
}

std::vector<std::string> list_directory(const std::string& path, FileSystem& files) {
  std::vector<std::string> names;
  if (again([&] { return files.list(path, names); }) != 0) fail_file("list", path, errno);
  std::sort(names.begin(), names.end());
  return names;
}

void remove_file(const std::string& path, FileSystem& files) {
  if (again([&] { return files.unlink(path); }) != 0 && errno != ENOENT) fail_file("remove", path, errno);
}

void rename_without_replacing(const std::string& from, const std::string& to, FileSystem& files) {
  if (again([&] { return files.rename_new(from, to); }) == 0) return;
  if (errno != EINVAL && errno != ENOSYS) fail_file("rename '" + from + "' to", to, errno);
  // This file system can't: a hard link refuses an existing name as well.
  if (again([&] { return files.link(from, to); }) != 0) fail_file("link '" + from + "' to", to, errno);
  if (again([&] { return files.unlink(from); }) != 0) fail_file("remove", from, errno);
}

void sync_directory(const std::string& path, FileSystem& files) {
  const int fd = again([&] { return files.open(path, O_RDONLY | O_DIRECTORY, 0); });
  if (fd == -1) fail_file("open directory", path, errno);
  const int result = again([&] { return files.fsync(fd); });
  const int code = errno;
  files.close(fd);
  // Some file systems (FUSE, SMB) keep names safe by themselves and refuse to flush a folder.
  if (result != 0 && code != EINVAL && code != ENOTSUP) fail_file("flush directory", path, code);
}

std::string parent_directory(const std::string& path) {
  size_t end = path.find_last_not_of('/');
  if (end == std::string::npos) return path.empty() ? "." : "/";
  const size_t slash = path.find_last_of('/', end);
  if (slash == std::string::npos) return ".";
  end = path.find_last_not_of('/', slash);
  return end == std::string::npos ? "/" : path.substr(0, end + 1);
}

std::string join_path(const std::string& directory, const std::string& name) {
  if (directory.empty() || directory == ".") return name;
  return directory.back() == '/' ? directory + name : directory + "/" + name;
}

}  // namespace rowan
