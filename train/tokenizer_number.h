// The number tokenizer: data that has ids and no text. A token is written as its id in decimal and a space.
#pragma once

#include "train/tokenizer.h"

namespace rowan {

class NumberTokenizer : public Tokenizer {
 public:
  explicit NumberTokenizer(int64_t vocab_size);  // ids 0..vocab_size-1; Error unless 1 <= vocab_size < 2^31

  std::string kind() const override { return "number"; }
  int64_t vocab_size() const override { return vocab_size_; }
  using Tokenizer::encode;
  // Numbers parted by spaces or line ends. Error for what is no number, or no id.
  void encode(std::string_view text, const TextPlace& place, std::vector<int32_t>& out) const override;
  void append_token(int32_t id, std::string& out) const override;
  int64_t bytes_of(int32_t id) const override;
  std::string serialize() const override;

 private:
  int64_t vocab_size_;
};

}  // namespace rowan
