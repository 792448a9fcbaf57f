// The char tokenizer and how its vocabulary is collected from text that is read in pieces.
#pragma once

#include <vector>

#include "train/tokenizer.h"

namespace rowan {

// The set of characters in some text.
class CharacterSet {
 public:
  CharacterSet() : seen_(kCodePoints, false) {}
  void add(std::string_view text, const TextPlace& place);  // Error with file and byte offset where it is not UTF-8
  std::vector<char32_t> sorted() const;

 private:
  static constexpr size_t kCodePoints = 0x110000;
  std::vector<bool> seen_;
};

class CharTokenizer : public Tokenizer {
 public:
  // Valid code points, strictly increasing, at least one.
  explicit CharTokenizer(std::vector<char32_t> characters);

  std::string kind() const override { return "char"; }
  int64_t vocab_size() const override { return static_cast<int64_t>(characters_.size()); }
  using Tokenizer::encode;
  void encode(std::string_view text, const TextPlace& place, std::vector<int32_t>& out) const override;
  void append_token(int32_t id, std::string& out) const override;
  int64_t bytes_of(int32_t id) const override;
  std::string serialize() const override;

  static std::unique_ptr<Tokenizer> from_characters(std::string_view characters, const std::string& name);

 private:
  char32_t character(int32_t id) const;

  std::vector<char32_t> characters_;
  std::vector<int32_t> id_of_;  // by code point, up to the largest; -1: none
};

}  // namespace rowan
