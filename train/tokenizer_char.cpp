#include "train/tokenizer_char.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "train/utf8.h"

namespace rowan {
namespace {

ErrorKind kind_of(const TextPlace& place) {
  return place.is_prompt ? ErrorKind::kUsage : ErrorKind::kData;
}

[[noreturn]] void fail_invalid(std::string_view rest, const Utf8Char& c, const TextPlace& place, size_t at) {
  char byte[8];
  std::snprintf(byte, sizeof byte, "0x%02X", static_cast<unsigned>(static_cast<unsigned char>(rest[0])));
  const bool incomplete = c.status == Utf8Char::Status::kIncomplete;
  throw Error(join_text("[tokenizer] ", place.name, " is not valid UTF-8: ",
                        incomplete ? "it ends inside the character that begins with byte " : "unexpected byte ", byte,
                        " at byte offset ", place.offset + at),
              kind_of(place), "tokenizer = \"byte\" takes any bytes");
}

// Calls take(code point, offset) for every character of text.
template <class Take>
void for_each_character(std::string_view text, const TextPlace& place, Take&& take) {
  for (size_t at = 0; at < text.size();) {
    const unsigned char lead = static_cast<unsigned char>(text[at]);
    if (lead < 0x80) {
      take(char32_t{lead}, at);
      ++at;
      continue;
    }
    const Utf8Char c = read_utf8(text.substr(at));
    if (c.status != Utf8Char::Status::kOk) fail_invalid(text.substr(at), c, place, at);
    take(c.code_point, at);
    at += static_cast<size_t>(c.length);
  }
}

}  // namespace

void CharacterSet::add(std::string_view text, const TextPlace& place) {
  for_each_character(text, place, [&](char32_t c, size_t) { seen_[c] = true; });
}

std::vector<char32_t> CharacterSet::sorted() const {
  std::vector<char32_t> out;
  for (size_t c = 0; c < seen_.size(); ++c)
    if (seen_[c]) out.push_back(static_cast<char32_t>(c));
  return out;
}

CharTokenizer::CharTokenizer(std::vector<char32_t> characters) : characters_(std::move(characters)) {
  ROWAN_ASSERT(!characters_.empty());
  id_of_.assign(size_t{characters_.back()} + 1, -1);
  for (size_t i = 0; i < characters_.size(); ++i) {
    ROWAN_ASSERT(i == 0 || characters_[i - 1] < characters_[i]);
    id_of_[characters_[i]] = static_cast<int32_t>(i);
  }
}

void CharTokenizer::encode(std::string_view text, const TextPlace& place, std::vector<int32_t>& out) const {
  for_each_character(text, place, [&](char32_t c, size_t at) {
    const int32_t id = c < id_of_.size() ? id_of_[c] : -1;
    if (id < 0)
      throw Error(join_text("[tokenizer] ", place.name, ": character ", describe_character(c), " at byte offset ",
                            place.offset + at, " is not among the ", vocab_size(), " characters of the vocabulary"),
                  kind_of(place),
                  place.is_prompt ? "a char model only knows the characters it was trained on; leave this one out, or train with "
                                    "tokenizer = \"byte\""
                                  : "the vocabulary comes from data.train; tokenizer = \"byte\" takes any bytes");
    out.push_back(id);
  });
}

char32_t CharTokenizer::character(int32_t id) const {
  ROWAN_CHECK(id >= 0 && id < vocab_size(), "[tokenizer] id ", id, " is outside [0, ", vocab_size(), ")");
  return characters_[static_cast<size_t>(id)];
}

void CharTokenizer::append_token(int32_t id, std::string& out) const {
  append_utf8(out, character(id));
}

int64_t CharTokenizer::bytes_of(int32_t id) const {
  return utf8_length(character(id));
}

std::string CharTokenizer::serialize() const {
  std::string all;
  for (char32_t c : characters_) append_utf8(all, c);
  return nlohmann::json{{"format", "rowan-tokenizer"}, {"version", 1}, {"kind", kind()}, {"characters", all}}.dump() + "\n";
}

std::unique_ptr<Tokenizer> CharTokenizer::from_characters(std::string_view text, const std::string& name) {
  std::vector<char32_t> characters;
  for_each_character(text, {.name = name}, [&](char32_t c, size_t at) {
    if (!characters.empty() && c <= characters.back())
      fail_data("[tokenizer] ", name, ": character ", describe_character(c), " at byte ", at,
                " of \"characters\" is out of order or repeated");
    characters.push_back(c);
  });
  if (characters.empty()) fail_data("[tokenizer] ", name, ": \"characters\" is empty");
  return std::make_unique<CharTokenizer>(std::move(characters));
}

}  // namespace rowan
