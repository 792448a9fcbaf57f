#include "train/stream_decoder.h"

#include <string_view>

#include "train/utf8.h"

namespace rowan {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

}  // namespace

std::string StreamDecoder::push(int32_t id) {
  tokenizer_->append_token(id, held_);
  std::string out;
  size_t at = 0;
  while (at < held_.size()) {
    const std::string_view rest = std::string_view(held_).substr(at);
    const Utf8Char c = read_utf8(rest);
    if (c.status == Utf8Char::Status::kIncomplete) break;
    out += c.status == Utf8Char::Status::kOk ? rest.substr(0, static_cast<size_t>(c.length)) : kReplacement;
    at += static_cast<size_t>(c.length);
  }
  held_.erase(0, at);
  return out;
}

std::string StreamDecoder::finish() {
  const std::string out(held_.empty() ? std::string_view() : kReplacement);
  held_.clear();
  return out;
}

}  // namespace rowan
