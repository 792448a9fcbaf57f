#include "train/token_file_writer.h"

#include <xxhash.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace rowan {
namespace {

constexpr size_t kBuffer = size_t{1} << 20;

TokenFileHeader header_for(const Tokenizer& tokenizer, const std::string& serialized) {
  TokenFileHeader h{};
  std::memcpy(h.magic, kTokenFileMagic, sizeof h.magic);
  h.version = kTokenFileVersion;
  h.header_bytes = sizeof h;
  h.token_bytes = static_cast<uint32_t>(bytes_per_token(tokenizer.vocab_size()));
  h.chunk_tokens = TokenDigest::kChunk;
  h.vocab_size = static_cast<uint64_t>(tokenizer.vocab_size());
  h.vocab_hash = tokenizer.hash();
  h.tokenizer_bytes = serialized.size();
  return h;
}

// Before any work is done for a file that could not be published.
const std::string& checked_path(const std::string& path, IfExists if_exists, FileSystem& files) {
  if (if_exists == IfExists::kRefuse && file_exists(path, files)) fail_file("write", path, EEXIST);
  if (directory_exists(path, files)) fail_file("write", path, EISDIR);
  return path;
}

}  // namespace

TokenFileWriter::TokenFileWriter(const std::string& path, const Tokenizer& tokenizer, IfExists if_exists, FileSystem& files)
    : path_(checked_path(path, if_exists, files)),
      if_exists_(if_exists),
      files_(files),
      tokenizer_(tokenizer.serialize()),
      digest_(bytes_per_token(tokenizer.vocab_size())),
      temporary_(path, files) {
  header_ = header_for(tokenizer, tokenizer_);
  const TokenFileHeader nothing{};  // the real one is written last: a file without it is recognized as incomplete
  write(&nothing, sizeof nothing);
}

void TokenFileWriter::write(const void* data, size_t bytes) {
  temporary_.file().write(end_, data, bytes);
  end_ += static_cast<int64_t>(bytes);
}

void TokenFileWriter::flush() {
  digest_.add(packed_);
  write(packed_.data(), packed_.size());
  packed_.clear();
}

void TokenFileWriter::append(std::span<const int32_t> ids, int64_t text_bytes) {
  append_packed(ids, static_cast<int>(header_.token_bytes), packed_);
  header_.tokens += ids.size();
  header_.text_bytes += static_cast<uint64_t>(text_bytes);
  if (packed_.size() >= kBuffer) flush();
}

void TokenFileWriter::publish() {
  flush();
  const std::vector<uint64_t>& chunks = digest_.finish();
  write(chunks.data(), chunks.size() * sizeof(uint64_t));
  write(tokenizer_.data(), tokenizer_.size());
  header_.chunks_hash = XXH3_64bits(chunks.data(), chunks.size() * sizeof(uint64_t));
  header_.header_hash = hash_header(header_);
  temporary_.file().write(0, &header_, sizeof header_);
  temporary_.file().sync();
  files_.drop_cache(temporary_.file().descriptor());  // a hint: what is read back should come from the device
  temporary_.file().close();
  TokenFile(temporary_.path()).verify();
  temporary_.rename(if_exists_);
  sync_directory(parent_directory(path_), files_);
}

}  // namespace rowan
