// TemporaryFile: a new file in the folder of its final name, removed unless it was renamed to that.
#pragma once

#include <string>

#include "train/file.h"

namespace rowan {

class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& final_path, FileSystem& files = system_files());
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  File& file() { return file_; }
  const std::string& path() const { return file_.path(); }
  // Gives the file, which must be flushed and closed, its final name. The folder remains to be flushed.
  void rename(IfExists if_exists);

 private:
  std::string final_path_;
  FileSystem& files_;
  File file_;
  bool renamed_ = false;
};

}  // namespace rowan
