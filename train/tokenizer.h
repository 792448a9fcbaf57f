// Tokenizer: text to token ids and back.
//
//   char   one id per Unicode code point, sorted by code point: the vocabulary of the text it was made from
//   byte   256 ids, one per byte: takes any file and any prompt
//   number the ids themselves, in decimal: of built-in data that has no text
//
// Nothing is normalized: CRLF, a byte order mark and NUL are characters like others, so decode(encode(text)) == text.
// Not here: merges (BPE), special tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/ids.h"

namespace rowan {

// Where a piece of text stands, for messages: "corpus.txt" and the bytes before it, or "the prompt" and 0.
struct TextPlace {
  std::string name = "the text";
  uint64_t offset = 0;     // bytes
  bool is_prompt = false;  // errors are then wrong usage rather than wrong data
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  virtual std::string kind() const = 0;  // "char", "byte", "number"
  virtual int64_t vocab_size() const = 0;
  // Appends the ids of `text`, which must not end inside a character. Error naming the character or byte that has no id, its
  // place, and what to do; `out` is then unspecified.
  virtual void encode(std::string_view text, const TextPlace& place, std::vector<int32_t>& out) const = 0;
  // Appends the bytes that token `id` stands for. Error for an id outside [0, vocab_size()).
  virtual void append_token(int32_t id, std::string& out) const = 0;
  virtual int64_t bytes_of(int32_t id) const = 0;  // how many bytes append_token() appends

  // JSON text that make_from_serialized() takes back: {"format": "rowan-tokenizer", "version": 1, "kind": ..., ...}. The same
  // bytes for equal vocabularies. It is /tokenizer in checkpoints and tokenizer.json in the run directory.
  virtual std::string serialize() const = 0;
  uint64_t hash() const;  // XXH3-64 of serialize()

  std::vector<int32_t> encode(std::string_view text, const TextPlace& place = {}) const;
  std::string decode(std::span<const int32_t> ids) const;  // bytes as they come; StreamDecoder makes valid UTF-8 of them
  // Bytes of text behind these ids, those that are kIgnored left out: what bits per byte divides by.
  int64_t count_bytes(std::span<const int32_t> ids) const;

  // kind "char" or "byte"; `text` gives char its vocabulary. Error for another kind, or for text that is not UTF-8.
  static std::unique_ptr<Tokenizer> make(const std::string& kind, std::string_view text, const TextPlace& place = {});
  // Trusts nothing. `name` says in errors where the bytes came from.
  static std::unique_ptr<Tokenizer> deserialize(std::string_view bytes, const std::string& name = "tokenizer");
};

}  // namespace rowan
