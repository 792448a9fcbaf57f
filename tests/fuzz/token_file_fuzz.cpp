// Token files. The first byte says how much of the file is signed anew, so that the checks behind each checksum are reached:
// 0: nothing, 1: the header, 2: the table of chunks too, 3: the chunks themselves too.
#include <xxhash.h>

#include <vector>

#include "tests/fuzz/fuzz_input.h"
#include "train/token_file.h"

namespace rowan::fuzz {
namespace {

struct Layout {  // what the header says, as far as it lies within the file
  size_t tokens_at = sizeof(TokenFileHeader), token_bytes = 0, chunks_at = 0, chunk_bytes = 0, tokenizer_at = 0;
};

bool lay_out(const TokenFileHeader& h, size_t size, Layout& out) {
  if (h.token_bytes == 0 || h.token_bytes > 4 || h.tokens > size) return false;
  out.token_bytes = h.tokens * h.token_bytes;
  out.chunks_at = out.tokens_at + out.token_bytes;
  out.chunk_bytes = 8 * ((h.tokens + TokenDigest::kChunk - 1) / TokenDigest::kChunk);
  out.tokenizer_at = out.chunks_at + out.chunk_bytes;
  return out.tokenizer_at <= size;
}

void sign(std::vector<uint8_t>& file, int depth) {
  TokenFileHeader h;
  if (depth == 0 || file.size() < sizeof h) return;
  std::memcpy(&h, file.data(), sizeof h);
  Layout at;
  if (lay_out(h, file.size(), at)) {
    if (depth >= 3) {
      const size_t chunk = static_cast<size_t>(TokenDigest::kChunk) * h.token_bytes;
      for (size_t i = 0; i * 8 < at.chunk_bytes; ++i) {
        const uint64_t hash = XXH3_64bits(file.data() + at.tokens_at + i * chunk, std::min(chunk, at.token_bytes - i * chunk));
        std::memcpy(file.data() + at.chunks_at + i * 8, &hash, sizeof hash);
      }
    }
    if (depth >= 2) {
      h.tokenizer_bytes = file.size() - at.tokenizer_at;
      h.chunks_hash = XXH3_64bits(file.data() + at.chunks_at, at.chunk_bytes);
      h.vocab_hash = XXH3_64bits(file.data() + at.tokenizer_at, file.size() - at.tokenizer_at);
    }
  }
  h.header_hash = hash_header(h);
  std::memcpy(file.data(), &h, sizeof h);
}

void use(const std::string& path) {
  is_token_file(path);
  const TokenFile file(path);
  check(!file.fingerprint().empty(), "a token file has a fingerprint");
  if (!accepted([&] { file.verify(); })) return;
  std::vector<int32_t> ids(static_cast<size_t>(std::min<int64_t>(file.size(), 300)));
  file.read(file.size() - std::ssize(ids), ids);
  check(file.tokenizer()->count_bytes(ids) == std::ssize(file.tokenizer()->decode(ids)), "ids have the length of their text");
}

}  // namespace
}  // namespace rowan::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rowan::fuzz;
  static const MemoryFile file;
  Input input(data, size);
  const int depth = input.number<uint8_t>() % 4;
  const Bytes bytes = input.all();
  std::vector<uint8_t> copy(bytes.begin(), bytes.end());
  sign(copy, depth);
  file.write(copy);
  accepted([&] { use(file.path()); });
  return 0;
}
