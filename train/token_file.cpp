#include "train/token_file.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "core/error.h"

namespace rowan {
namespace {

constexpr uint64_t kMaxTokenizerBytes = 64 << 20;  // every Unicode character takes under 5 MB
constexpr const char* kHint = "make it again with rowan prepare";

[[noreturn]] void fail_broken(const std::string& path, const std::string& what) {
  throw Error(join_text("[token file] '", path, "': ", what), ErrorKind::kData, kHint);
}

uint64_t chunk_count(uint64_t tokens) {
  constexpr uint64_t kChunk = TokenDigest::kChunk;
  return tokens / kChunk + (tokens % kChunk != 0);
}

}  // namespace

uint64_t hash_header(const TokenFileHeader& header) {
  return XXH3_64bits(&header, offsetof(TokenFileHeader, header_hash));
}

bool is_token_file(const std::string& path) {
  const File file = File::open(path);
  char magic[sizeof kTokenFileMagic];
  if (file.size() < static_cast<int64_t>(sizeof magic)) return false;
  file.read(0, magic, sizeof magic);
  return std::memcmp(magic, kTokenFileMagic, sizeof magic) == 0;
}

void TokenFile::check_header() const {
  const TokenFileHeader& h = header_;
  const std::string& path = file_.path();
  if (std::memcmp(h.magic, kTokenFileMagic, sizeof kTokenFileMagic) != 0)
    fail_broken(path, "is not a token file: it does not begin with ROWANTOK");
  if (h.version != kTokenFileVersion)
    fail_broken(path, join_text("has version ", h.version, "; this program reads version ", kTokenFileVersion));
  if (hash_header(h) != h.header_hash) fail_broken(path, "the header is damaged: its checksum does not fit");
  if (h.header_bytes != sizeof h || h.chunk_tokens != TokenDigest::kChunk)
    fail_broken(path, join_text("expected a header of ", sizeof h, " bytes and chunks of ", TokenDigest::kChunk, " tokens, got ",
                                h.header_bytes, " and ", h.chunk_tokens));
  if (h.vocab_size < 1 || h.vocab_size > uint64_t{1} << 31)
    fail_broken(path, join_text("vocabulary size ", h.vocab_size, " is outside [1, 2^31]"));
  if (h.token_bytes != static_cast<uint32_t>(bytes_per_token(static_cast<int64_t>(h.vocab_size))))
    fail_broken(path, join_text(h.token_bytes, " bytes a token do not fit a vocabulary of ", h.vocab_size));
  uint64_t token_bytes = 0, total = 0;
  const bool overflow = __builtin_mul_overflow(h.tokens, uint64_t{h.token_bytes}, &token_bytes) ||
                        __builtin_add_overflow(token_bytes, chunk_count(h.tokens) * 8 + sizeof h, &total) ||
                        __builtin_add_overflow(total, h.tokenizer_bytes, &total);
  if (overflow || total != static_cast<uint64_t>(file_bytes_))
    fail_broken(path, join_text("has ", file_bytes_, " bytes, but its header describes ",
                                overflow ? "more than 2^64" : std::to_string(total), ": it was cut short or is not complete"));
  if (h.tokenizer_bytes > kMaxTokenizerBytes)
    fail_broken(path, join_text("a tokenizer of ", h.tokenizer_bytes, " bytes is too large"));
}

TokenFile::TokenFile(const std::string& path) : file_(File::open(path)), file_bytes_(file_.size()) {
  if (file_bytes_ < static_cast<int64_t>(sizeof header_))
    fail_broken(path, join_text("has ", file_bytes_, " bytes; a token file has at least ", sizeof header_));
  file_.read(0, &header_, sizeof header_);
  check_header();

  // The sizes below add up to that of the file, so no memory is taken on the word of the header.
  int64_t at = static_cast<int64_t>(sizeof header_ + header_.tokens * header_.token_bytes);
  chunks_.resize(chunk_count(header_.tokens));
  file_.read(at, chunks_.data(), chunks_.size() * sizeof(uint64_t));
  at += static_cast<int64_t>(chunks_.size() * sizeof(uint64_t));
  if (XXH3_64bits(chunks_.data(), chunks_.size() * sizeof(uint64_t)) != header_.chunks_hash)
    fail_broken(path, "the table of checksums is damaged");
  checked_ = std::make_unique<std::atomic<bool>[]>(chunks_.size());

  std::string blob(header_.tokenizer_bytes, '\0');
  file_.read(at, blob.data(), blob.size());
  if (XXH3_64bits(blob.data(), blob.size()) != header_.vocab_hash)
    fail_broken(path, "the tokenizer is damaged: its checksum does not fit");
  tokenizer_ = Tokenizer::deserialize(blob, "'" + path + "'");
  if (tokenizer_->vocab_size() != static_cast<int64_t>(header_.vocab_size))
    fail_broken(path, join_text("the header has a vocabulary of ", header_.vocab_size, ", its tokenizer one of ",
                                tokenizer_->vocab_size()));
}

void TokenFile::check_chunk(int64_t chunk) const {
  std::atomic<bool>& done = checked_[static_cast<size_t>(chunk)];
  if (done.load(std::memory_order_relaxed)) return;
  const int64_t first = chunk * TokenDigest::kChunk, count = std::min(TokenDigest::kChunk, size() - first);
  std::vector<std::byte> packed(static_cast<size_t>(count * token_bytes()));
  file_.read(static_cast<int64_t>(sizeof header_) + first * token_bytes(), packed.data(), packed.size());
  if (XXH3_64bits(packed.data(), packed.size()) != chunks_[static_cast<size_t>(chunk)])
    fail_broken(file_.path(), join_text("tokens ", first, " to ", first + count - 1, " are damaged: their checksum does not fit"));
  done.store(true, std::memory_order_relaxed);
}

void TokenFile::read(int64_t first, std::span<int32_t> out) const {
  const int64_t count = static_cast<int64_t>(out.size());
  ROWAN_ASSERT(first >= 0 && first + count <= size());
  if (out.empty()) return;
  for (int64_t c = first / TokenDigest::kChunk; c <= (first + count - 1) / TokenDigest::kChunk; ++c) check_chunk(c);
  std::vector<std::byte> packed(out.size() * header_.token_bytes);
  file_.read(static_cast<int64_t>(sizeof header_) + first * token_bytes(), packed.data(), packed.size());
  unpack(packed.data(), token_bytes(), out);
  const int32_t limit = static_cast<int32_t>(std::min<uint64_t>(header_.vocab_size, INT32_MAX));
  for (size_t i = 0; i < out.size(); ++i)
    if (out[i] < 0 || out[i] >= limit)
      fail_broken(file_.path(), join_text("id ", static_cast<uint32_t>(out[i]), " at token ", first + static_cast<int64_t>(i),
                                          " is outside the vocabulary of ", header_.vocab_size));
}

std::string TokenFile::fingerprint() const {
  return TokenDigest::fingerprint(header_.vocab_hash, size(), token_bytes(), chunks_);
}

void TokenFile::verify() const {
  std::vector<int32_t> ids;
  for (int64_t first = 0; first < size(); first += TokenDigest::kChunk) {
    ids.resize(static_cast<size_t>(std::min(TokenDigest::kChunk, size() - first)));
    read(first, ids);
  }
}

}  // namespace rowan
