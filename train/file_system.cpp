#include "train/file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace rowan {

int FileSystem::open(const std::string& path, int flags, mode_t mode) {
  return ::open(path.c_str(), flags | O_CLOEXEC, mode);
}
int FileSystem::close(int fd) {
  return ::close(fd);
}
ssize_t FileSystem::pread(int fd, void* data, size_t bytes, int64_t offset) {
  return ::pread(fd, data, bytes, offset);
}
ssize_t FileSystem::pwrite(int fd, const void* data, size_t bytes, int64_t offset) {
  return ::pwrite(fd, data, bytes, offset);
}
ssize_t FileSystem::write(int fd, const void* data, size_t bytes) {
  return ::write(fd, data, bytes);
}
int FileSystem::fsync(int fd) {
  return ::fsync(fd);
}
int FileSystem::reserve(int fd, int64_t bytes) {
  return ::fallocate(fd, 0, 0, bytes);
}
int FileSystem::truncate(int fd, int64_t bytes) {
  return ::ftruncate(fd, bytes);
}
int FileSystem::status(int fd, struct stat& out) {
  return ::fstat(fd, &out);
}

int FileSystem::drop_cache(int fd) {
  const int code = ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  if (code != 0) errno = code;
  return code == 0 ? 0 : -1;
}

int FileSystem::lock(int fd) {
  return ::flock(fd, LOCK_EX | LOCK_NB);
}
int FileSystem::rename(const std::string& from, const std::string& to) {
  return ::rename(from.c_str(), to.c_str());
}
int FileSystem::rename_new(const std::string& from, const std::string& to) {
  return ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE);
}
int FileSystem::link(const std::string& from, const std::string& to) {
  return ::link(from.c_str(), to.c_str());
}
int FileSystem::unlink(const std::string& path) {
  return ::unlink(path.c_str());
}
int FileSystem::make_directory(const std::string& path) {
  return ::mkdir(path.c_str(), 0777);
}

int FileSystem::list(const std::string& path, std::vector<std::string>& names) {
  DIR* directory = ::opendir(path.c_str());
  if (directory == nullptr) return -1;
  names.clear();
  errno = 0;
  while (const dirent* entry = ::readdir(directory)) {
    if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0) names.push_back(entry->d_name);
  }
  const int code = errno;
  ::closedir(directory);
  errno = code;
  return code == 0 ? 0 : -1;
}

FileSystem& system_files() {
  static FileSystem files;
  return files;
}

}  // namespace rowan
