// StreamDecoder: valid UTF-8 from tokens as they are made. Bytes of a character that is not complete yet are held back; bytes that
// can't belong to one become U+FFFD, one for each longest valid beginning, as browsers do.
#pragma once

#include <memory>
#include <string>

#include "train/tokenizer.h"

namespace rowan {

class StreamDecoder {
 public:
  explicit StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer) : tokenizer_(std::move(tokenizer)) {}

  std::string push(int32_t id);  // what can be shown now; may be empty
  std::string finish();          // what was held back, as U+FFFD; the decoder is then as new

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::string held_;
};

}  // namespace rowan
