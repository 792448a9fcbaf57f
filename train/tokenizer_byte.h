// The byte tokenizer: id = byte.
#pragma once

#include "train/tokenizer.h"

namespace rowan {

class ByteTokenizer : public Tokenizer {
 public:
  std::string kind() const override { return "byte"; }
  int64_t vocab_size() const override { return 256; }
  using Tokenizer::encode;
  void encode(std::string_view text, const TextPlace& place, std::vector<int32_t>& out) const override;
  void append_token(int32_t id, std::string& out) const override;
  int64_t bytes_of(int32_t id) const override;
  std::string serialize() const override;
};

}  // namespace rowan
