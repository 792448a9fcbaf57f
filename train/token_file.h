// Token files: encoded text on disk, made by `rowan prepare`, read in windows while training. A token file holds its tokenizer, so
// it is all that training and sampling need.
//
// Version 1, little-endian:
//   bytes 0..127     header, see TokenFileHeader
//   then             tokens, 1, 2 or 4 bytes each: the narrowest width that the vocabulary allows
//   then             XXH3-64 of every chunk of 65536 tokens, 8 bytes each
//   then             the tokenizer as Tokenizer::serialize() gives it
// Nothing in a file is trusted: the header has a checksum and must agree with the size of the file, each chunk is compared with
// its checksum when it is first used, and every id with the vocabulary whenever it is read.
//
// Reading uses pread, not a mapping (train/file.h): a file that shrinks while it is in use is an Error and never a SIGBUS, which no
// check ahead of the access can rule out for a mapping. A window costs one system call, under a microsecond of a step.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "train/file.h"
#include "train/tokenizer.h"
#include "train/tokens.h"

namespace rowan {

struct TokenFileHeader {
  char magic[8];          // "ROWANTOK"
  uint32_t version;       // 1
  uint32_t header_bytes;  // 128
  uint32_t token_bytes;   // 1, 2 or 4
  uint32_t chunk_tokens;  // 65536
  uint64_t tokens;        // how many
  uint64_t vocab_size;
  uint64_t vocab_hash;       // XXH3-64 of the tokenizer
  uint64_t text_bytes;       // of the text that was encoded
  uint64_t tokenizer_bytes;  // length of the tokenizer at the end
  uint64_t chunks_hash;      // XXH3-64 of the chunks' checksums
  uint8_t reserved[48];      // 0
  uint64_t header_hash;      // XXH3-64 of the 120 bytes before
};
static_assert(sizeof(TokenFileHeader) == 128);

inline constexpr char kTokenFileMagic[8] = {'R', 'O', 'W', 'A', 'N', 'T', 'O', 'K'};
inline constexpr uint32_t kTokenFileVersion = 1;
uint64_t hash_header(const TokenFileHeader& header);  // what header_hash must be

bool is_token_file(const std::string& path);  // by its first bytes

class TokenFile : public Tokens {
 public:
  explicit TokenFile(const std::string& path);  // Error (data) saying which part of the file is wrong

  const std::shared_ptr<const Tokenizer>& tokenizer() const { return tokenizer_; }
  int64_t text_bytes() const { return static_cast<int64_t>(header_.text_bytes); }
  int token_bytes() const { return static_cast<int>(header_.token_bytes); }

  int64_t size() const override { return static_cast<int64_t>(header_.tokens); }
  void read(int64_t first, std::span<int32_t> out) const override;  // from any thread
  std::string fingerprint() const override;
  void verify() const;  // every chunk now, rather than when it is first used

 private:
  void check_header() const;
  void check_chunk(int64_t chunk) const;

  File file_;
  int64_t file_bytes_;
  TokenFileHeader header_{};
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::vector<uint64_t> chunks_;
  // Chunks found right. Two threads that meet a new chunk both check it.
  mutable std::unique_ptr<std::atomic<bool>[]> checked_;
};

}  // namespace rowan
