// TokenFileWriter: makes a token file (train/token_file.h) in bounded memory: nothing grows but 8 bytes for every 65536 tokens.
//
// The file appears under its name when it is complete, flushed to the device and read back without a difference, or not at all.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "train/temporary_file.h"
#include "train/token_file.h"

namespace rowan {

class TokenFileWriter {
 public:
  TokenFileWriter(const std::string& path, const Tokenizer& tokenizer, IfExists if_exists, FileSystem& files = system_files());

  // ids of that tokenizer, and how many bytes of text they stand for.
  void append(std::span<const int32_t> ids, int64_t text_bytes);
  void publish();  // once, at the end

 private:
  void flush();
  void write(const void* data, size_t bytes);

  std::string path_;
  IfExists if_exists_;
  FileSystem& files_;
  TokenFileHeader header_{};
  std::string tokenizer_;
  TokenDigest digest_;
  std::vector<std::byte> packed_;  // not yet written
  int64_t end_ = 0;                // of what is written
  TemporaryFile temporary_;
};

}  // namespace rowan
