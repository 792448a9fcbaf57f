#include "train/digest.h"

#include <xxhash.h>

#include <new>

namespace rowan {
namespace {

Digest canonical(XXH128_hash_t hash) {
  XXH128_canonical_t bytes;
  XXH128_canonicalFromHash(&bytes, hash);
  Digest digest;
  static_assert(sizeof(bytes.digest) == sizeof(digest));
  for (size_t i = 0; i < digest.size(); ++i) digest[i] = bytes.digest[i];
  return digest;
}

}  // namespace

struct Digester::State {
  XXH3_state_t* xxh = XXH3_createState();
  ~State() { XXH3_freeState(xxh); }
};

std::string digest_text(const Digest& digest) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

uint64_t hash64(const void* data, size_t bytes) {
  return XXH3_64bits(data, bytes);
}

Digester::Digester() : state_(std::make_unique<State>()) {
  if (state_->xxh == nullptr) throw std::bad_alloc();
  XXH3_128bits_reset(state_->xxh);
}
Digester::~Digester() = default;

void Digester::update(const void* data, size_t bytes) {
  if (bytes != 0) XXH3_128bits_update(state_->xxh, data, bytes);
}

Digest Digester::value() const {
  return canonical(XXH3_128bits_digest(state_->xxh));
}

Digest digest_of(const void* data, size_t bytes) {
  return canonical(XXH3_128bits(data, bytes));
}

}  // namespace rowan
