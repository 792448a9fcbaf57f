#include "train/tokens.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#include "core/error.h"

namespace rowan {
namespace {

static_assert(std::endian::native == std::endian::little, "token files are little-endian and read as they are");

std::string hash_text(std::string_view text) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(text.data(), text.size()));
  constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (unsigned char b : canonical.digest) {
    out += kHex[b >> 4];
    out += kHex[b & 15];
  }
  return out;
}

template <class T>
void append_as(std::span<const int32_t> ids, std::vector<std::byte>& out) {
  const size_t at = out.size();
  out.resize(at + ids.size() * sizeof(T));
  for (size_t i = 0; i < ids.size(); ++i) {
    const T value = static_cast<T>(ids[i]);
    std::memcpy(out.data() + at + i * sizeof(T), &value, sizeof(T));
  }
}

template <class T>
void unpack_as(const std::byte* packed, std::span<int32_t> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    T value;
    std::memcpy(&value, packed + i * sizeof(T), sizeof(T));
    out[i] = static_cast<int32_t>(value);  // a u32 above 2^31 comes out negative, and is refused as no id
  }
}

}  // namespace

int bytes_per_token(int64_t vocab_size) {
  return vocab_size <= 1 << 8 ? 1 : vocab_size <= 1 << 16 ? 2 : 4;
}

void append_packed(std::span<const int32_t> ids, int width, std::vector<std::byte>& out) {
  if (width == 1) return append_as<uint8_t>(ids, out);
  if (width == 2) return append_as<uint16_t>(ids, out);
  ROWAN_ASSERT(width == 4);
  append_as<uint32_t>(ids, out);
}

void unpack(const std::byte* packed, int width, std::span<int32_t> out) {
  if (width == 1) return unpack_as<uint8_t>(packed, out);
  if (width == 2) return unpack_as<uint16_t>(packed, out);
  ROWAN_ASSERT(width == 4);
  unpack_as<uint32_t>(packed, out);
}

struct TokenDigest::State {
  State() : hash(XXH3_createState(), XXH3_freeState) {
    if (!hash) throw std::bad_alloc();
    XXH3_64bits_reset(hash.get());
  }
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> hash;
};

TokenDigest::TokenDigest(int width) : chunk_bytes_(kChunk * width), state_(std::make_unique<State>()) {}

TokenDigest::~TokenDigest() = default;

void TokenDigest::end_chunk() {
  chunks_.push_back(XXH3_64bits_digest(state_->hash.get()));
  XXH3_64bits_reset(state_->hash.get());
  filled_ = 0;
}

void TokenDigest::add(std::span<const std::byte> packed) {
  while (!packed.empty()) {
    const size_t n = std::min(packed.size(), static_cast<size_t>(chunk_bytes_ - filled_));
    XXH3_64bits_update(state_->hash.get(), packed.data(), n);
    filled_ += static_cast<int64_t>(n);
    if (filled_ == chunk_bytes_) end_chunk();
    packed = packed.subspan(n);
  }
}

const std::vector<uint64_t>& TokenDigest::finish() {
  if (filled_ > 0) end_chunk();
  return chunks_;
}

std::string TokenDigest::fingerprint(uint64_t vocab_hash, int64_t tokens, int width, std::span<const uint64_t> chunks) {
  std::string text = join_text("tokens ", vocab_hash, " ", tokens, " ", width);
  for (uint64_t c : chunks) text += join_text(" ", c);
  return hash_text(text);
}

PackedTokens::PackedTokens(int64_t vocab_size, uint64_t vocab_hash)
    : width_(bytes_per_token(vocab_size)), vocab_hash_(vocab_hash) {}

void PackedTokens::append(std::span<const int32_t> ids) {
  append_packed(ids, width_, packed_);
}

void PackedTokens::read(int64_t first, std::span<int32_t> out) const {
  ROWAN_ASSERT(first >= 0 && first + static_cast<int64_t>(out.size()) <= size());
  unpack(packed_.data() + first * width_, width_, out);
}

std::string PackedTokens::fingerprint() const {
  TokenDigest digest(width_);
  digest.add(packed_);
  return TokenDigest::fingerprint(vocab_hash_, size(), width_, digest.finish());
}

TokenSlice::TokenSlice(std::shared_ptr<const Tokens> whole, int64_t begin, int64_t end)
    : whole_(std::move(whole)), begin_(begin), end_(end) {
  ROWAN_ASSERT(0 <= begin && begin <= end && end <= whole_->size());
}

void TokenSlice::read(int64_t first, std::span<int32_t> out) const {
  ROWAN_ASSERT(first >= 0 && first + static_cast<int64_t>(out.size()) <= size());
  whole_->read(begin_ + first, out);
}

std::string TokenSlice::fingerprint() const {
  if (begin_ == 0 && end_ == whole_->size()) return whole_->fingerprint();
  return hash_text(join_text("slice ", whole_->fingerprint(), " ", begin_, " ", end_));
}

TokenChain::TokenChain(std::vector<std::shared_ptr<const Tokens>> parts) : parts_(std::move(parts)) {
  ROWAN_ASSERT(!parts_.empty());
  int64_t end = 0;
  for (const auto& part : parts_) ends_.push_back(end += part->size());
}

void TokenChain::read(int64_t first, std::span<int32_t> out) const {
  ROWAN_ASSERT(first >= 0 && first + static_cast<int64_t>(out.size()) <= size());
  size_t i = static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), first) - ends_.begin());
  for (; !out.empty(); ++i) {
    const size_t n = std::min(out.size(), static_cast<size_t>(ends_[i] - first));
    parts_[i]->read(first - (ends_[i] - parts_[i]->size()), out.first(n));
    out = out.subspan(n);
    first += static_cast<int64_t>(n);
  }
}

std::string TokenChain::fingerprint() const {
  if (parts_.size() == 1) return parts_[0]->fingerprint();
  std::string text = "chain";
  for (const auto& part : parts_) text.append(" ").append(part->fingerprint());
  return hash_text(text);
}

}  // namespace rowan
