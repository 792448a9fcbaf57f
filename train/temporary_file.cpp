#include "train/temporary_file.h"

#include <unistd.h>

#include <cerrno>

namespace rowan {
namespace {

File create(const std::string& final_path, FileSystem& files) {
  const std::string stem = join_path(parent_directory(final_path), std::string(kTemporaryPrefix) + std::to_string(getpid()) + "-");
  for (int n = 0;; ++n) {
    try {
      return File::create(stem + std::to_string(n), files);
    } catch (const FileError& e) {  // EEXIST: another thread's, or left by a dead process of the same number
      if (e.code() != EEXIST || n == 10000) throw;
    }
  }
}

}  // namespace

TemporaryFile::TemporaryFile(const std::string& final_path, FileSystem& files)
    : final_path_(final_path), files_(files), file_(create(final_path, files)) {}

TemporaryFile::~TemporaryFile() {
  if (!renamed_) files_.unlink(path());  // when even that fails, the next start of a run removes it
}

void TemporaryFile::rename(IfExists if_exists) {
  if (if_exists == IfExists::kRefuse) {
    rename_without_replacing(path(), final_path_, files_);
  } else if (files_.rename(path(), final_path_) != 0) {
    fail_file("rename '" + path() + "' to", final_path_, errno);
  }
  renamed_ = true;
}

}  // namespace rowan
