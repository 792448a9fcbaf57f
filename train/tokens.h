// Tokens: a long run of token ids that can be read anywhere, in memory or in a file. PackedTokens: the one in memory.
//
// Ids are packed to the narrowest of 1, 2 or 4 bytes that the vocabulary allows, in memory as in token files, so that a text and
// the token file made from it have the same fingerprint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace rowan {

class Tokens {
 public:
  virtual ~Tokens() = default;
  virtual int64_t size() const = 0;  // tokens
  // out = ids [first, first + out.size()), which must lie inside. Error (data) when a file behind it fails or was changed.
  virtual void read(int64_t first, std::span<int32_t> out) const = 0;
  // 32 hex digits that name the content: XXH3-128 over vocabulary and ids. Equal for equal content, wherever it is kept.
  virtual std::string fingerprint() const = 0;
};

int bytes_per_token(int64_t vocab_size);  // 1, 2 or 4
// Little-endian, `width` bytes a token; ids fit.
void append_packed(std::span<const int32_t> ids, int width, std::vector<std::byte>& out);
void unpack(const std::byte* packed, int width, std::span<int32_t> out);

// Checksums over packed tokens that arrive in order in pieces of any size: XXH3-64 of every chunk of kChunk tokens, and one
// fingerprint over those. Chunks let a reader check what it uses without reading a whole file first.
class TokenDigest {
 public:
  static constexpr int64_t kChunk = 1 << 16;

  explicit TokenDigest(int width);
  ~TokenDigest();
  TokenDigest(const TokenDigest&) = delete;
  TokenDigest& operator=(const TokenDigest&) = delete;

  void add(std::span<const std::byte> packed);
  const std::vector<uint64_t>& finish();  // one checksum a chunk, the last chunk may be shorter

  static std::string fingerprint(uint64_t vocab_hash, int64_t tokens, int width, std::span<const uint64_t> chunks);

 private:
  struct State;
  void end_chunk();
  int64_t chunk_bytes_, filled_ = 0;
  std::vector<uint64_t> chunks_;
  std::unique_ptr<State> state_;
};

class PackedTokens : public Tokens {
 public:
  PackedTokens(int64_t vocab_size, uint64_t vocab_hash);
  void append(std::span<const int32_t> ids);

  int64_t size() const override { return static_cast<int64_t>(packed_.size()) / width_; }
  void read(int64_t first, std::span<int32_t> out) const override;
  std::string fingerprint() const override;

 private:
  int width_;
  uint64_t vocab_hash_;
  std::vector<std::byte> packed_;
};

// Part [begin, end) of other tokens.
class TokenSlice : public Tokens {
 public:
  TokenSlice(std::shared_ptr<const Tokens> whole, int64_t begin, int64_t end);
  int64_t size() const override { return end_ - begin_; }
  void read(int64_t first, std::span<int32_t> out) const override;
  std::string fingerprint() const override;

 private:
  std::shared_ptr<const Tokens> whole_;
  int64_t begin_, end_;
};

// Parts one after the other, as if they were one file.
class TokenChain : public Tokens {
 public:
  explicit TokenChain(std::vector<std::shared_ptr<const Tokens>> parts);
  int64_t size() const override { return ends_.back(); }
  void read(int64_t first, std::span<int32_t> out) const override;
  std::string fingerprint() const override;

 private:
  std::vector<std::shared_ptr<const Tokens>> parts_;
  std::vector<int64_t> ends_;
};

}  // namespace rowan
