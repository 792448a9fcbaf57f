#include "train/tokenizer_number.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace rowan {
namespace {

constexpr std::string_view kSpaces = " \t\r\n";

}  // namespace

NumberTokenizer::NumberTokenizer(int64_t vocab_size) : vocab_size_(vocab_size) {
  ROWAN_CHECK(vocab_size >= 1 && vocab_size < int64_t{1} << 31, "[tokenizer] a number tokenizer of ", vocab_size,
              " ids; expected 1 or more, below 2^31");
}

void NumberTokenizer::encode(std::string_view text, const TextPlace& place, std::vector<int32_t>& out) const {
  for (size_t at = text.find_first_not_of(kSpaces); at != std::string_view::npos; at = text.find_first_not_of(kSpaces, at)) {
    const size_t end = std::min(text.find_first_of(kSpaces, at), text.size());
    int64_t id = 0;
    const auto [stop, error] = std::from_chars(text.data() + at, text.data() + end, id);
    if (error != std::errc{} || stop != text.data() + end || id < 0 || id >= vocab_size_)
      throw Error(join_text("[tokenizer] ", place.name, " at byte ", place.offset + at, ": expected an id from 0 to ",
                            vocab_size_ - 1, ", got '", text.substr(at, std::min<size_t>(end - at, 40)), "'"),
                  place.is_prompt ? ErrorKind::kUsage : ErrorKind::kData,
                  "this model has ids and no text: write numbers parted by spaces");
    out.push_back(static_cast<int32_t>(id));
    at = end;
  }
}

int64_t NumberTokenizer::bytes_of(int32_t id) const {
  ROWAN_CHECK(id >= 0 && id < vocab_size_, "[tokenizer] id ", id, " is outside [0, ", vocab_size_, ")");
  int64_t bytes = 2;  // a digit and the space
  for (int32_t rest = id / 10; rest > 0; rest /= 10) ++bytes;
  return bytes;
}

void NumberTokenizer::append_token(int32_t id, std::string& out) const {
  bytes_of(id);
  out += std::to_string(id) + " ";
}

std::string NumberTokenizer::serialize() const {
  return nlohmann::json{{"format", "rowan-tokenizer"}, {"version", 1}, {"kind", kind()}, {"vocab_size", vocab_size_}}.dump() + "\n";
}

}  // namespace rowan
