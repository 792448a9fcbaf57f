// Digests: XXH3 over bytes, 128 bits wide. They find what a disk, a cable or a bug changed; they do not prove who wrote a file.
//
// Text form: 32 hexadecimal digits, the same that `xxh128sum` prints.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace rowan {

using Digest = std::array<uint8_t, 16>;  // most significant byte first, as XXH128_canonical_t

std::string digest_text(const Digest& digest);
uint64_t hash64(const void* data, size_t bytes);  // XXH3-64, for short things: headers, names

// The digest of bytes that come in pieces; where they are cut has no effect.
class Digester {
 public:
  Digester();
  ~Digester();
  Digester(const Digester&) = delete;
  Digester& operator=(const Digester&) = delete;

  void update(const void* data, size_t bytes);
  void update(std::string_view text) { update(text.data(), text.size()); }
  Digest value() const;
  std::string text() const { return digest_text(value()); }

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Digest digest_of(const void* data, size_t bytes);

}  // namespace rowan
