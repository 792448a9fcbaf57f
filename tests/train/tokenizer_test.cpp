#include "train/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "train/stream_decoder.h"
#include "train/tokenizer_char.h"
#include "train/utf8.h"

namespace rowan {
namespace {

using ::testing::HasSubstr;
using namespace std::string_literals;

std::string message_of(const std::function<void()>& f, ErrorKind kind) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "no Error";
  return {};
}

TEST(Utf8, accepts_the_first_and_last_character_of_every_length) {
  const std::vector<std::pair<std::string, char32_t>> table = {{"\0"s, 0},
                                                               {"\x7F", 0x7F},
                                                               {"\xC2\x80", 0x80},
                                                               {"\xDF\xBF", 0x7FF},
                                                               {"\xE0\xA0\x80", 0x800},
                                                               {"\xED\x9F\xBF", 0xD7FF},
                                                               {"\xEE\x80\x80", 0xE000},
                                                               {"\xEF\xBF\xBF", 0xFFFF},
                                                               {"\xF0\x90\x80\x80", 0x10000},
                                                               {"\xF0\x9F\x98\x80", 0x1F600},
                                                               {"\xF4\x8F\xBF\xBF", 0x10FFFF}};
  for (const auto& [bytes, code_point] : table) {
    const Utf8Char c = read_utf8(bytes + "tail");
    EXPECT_EQ(c.status, Utf8Char::Status::kOk) << std::hex << static_cast<uint32_t>(code_point);
    EXPECT_EQ(c.code_point, code_point);
    EXPECT_EQ(c.length, static_cast<int>(bytes.size()));
    EXPECT_EQ(utf8_length(code_point), static_cast<int>(bytes.size()));
    std::string out;
    append_utf8(out, code_point);
    EXPECT_EQ(out, bytes);
  }
}

TEST(Utf8, refuses_what_no_continuation_can_save) {
  const std::vector<std::pair<std::string, int>> table = {{"\x80", 1},              // a continuation byte alone
                                                          {"\xC0\x80", 1},          // overlong NUL
                                                          {"\xC1\xBF", 1},          // overlong
                                                          {"\xE0\x9F\xBF", 1},      // overlong in 3
                                                          {"\xF0\x8F\xBF\xBF", 1},  // overlong in 4
                                                          {"\xED\xA0\x80", 1},      // surrogate D800
                                                          {"\xED\xBF\xBF", 1},      // surrogate DFFF
                                                          {"\xF4\x90\x80\x80", 1},  // U+110000
                                                          {"\xF5\x80\x80\x80", 1},
                                                          {"\xFE", 1},
                                                          {"\xFF", 1},
                                                          {"\xC3(", 1},
                                                          {"\xE2\x82(", 2},
                                                          {"\xF0\x9F\x98(", 3}};
  for (const auto& [bytes, length] : table) {
    const Utf8Char c = read_utf8(bytes);
    EXPECT_EQ(c.status, Utf8Char::Status::kInvalid) << ::testing::PrintToString(bytes);
    EXPECT_EQ(c.length, length) << ::testing::PrintToString(bytes);
  }
  for (const char* begun : {"\xC3", "\xE2", "\xE2\x82", "\xF0", "\xF0\x9F", "\xF0\x9F\x98"})
    EXPECT_EQ(read_utf8(begun).status, Utf8Char::Status::kIncomplete);
}

TEST(CharTokenizer, gives_ids_by_code_point) {
  const auto t = Tokenizer::make("char", "hello, wörld €😀\n");
  // By hand: \n space , d e h l o r w ö € 😀
  EXPECT_EQ(t->vocab_size(), 13);
  EXPECT_EQ(t->encode("\n ,d"), (std::vector<int32_t>{0, 1, 2, 3}));
  EXPECT_EQ(t->encode("ö€😀"), (std::vector<int32_t>{10, 11, 12}));
  EXPECT_EQ(t->bytes_of(0), 1);
  EXPECT_EQ(t->bytes_of(10), 2);
  EXPECT_EQ(t->bytes_of(11), 3);
  EXPECT_EQ(t->bytes_of(12), 4);
  EXPECT_EQ(t->count_bytes(std::vector<int32_t>{10, kIgnored, 12, 0}), 7);
}

TEST(Tokenizer, gives_back_the_same_bytes_with_crlf_bom_nul_and_emoji) {
  for (const std::string& text : {"\xEF\xBB\xBF"
                                  "line\r\nnext\rlast\n"s,
                                  "a\0b"s, "\xF0\x9F\x98\x80"s, "x"s, "e\xCC\x81 \xC3\xA9"s}) {
    for (const char* kind : {"char", "byte"}) {
      const auto t = Tokenizer::make(kind, text);
      EXPECT_EQ(t->decode(t->encode(text)), text) << kind;
      EXPECT_EQ(t->count_bytes(t->encode(text)), static_cast<int64_t>(text.size())) << kind;
      EXPECT_TRUE(t->encode("").empty());
    }
  }
  EXPECT_EQ(Tokenizer::make("char", "a\r\n\xEF\xBB\xBF")->vocab_size(), 4);
}

TEST(ByteTokenizer, takes_every_byte) {
  std::string all;
  for (int b = 0; b < 256; ++b) all += static_cast<char>(b);
  const auto t = Tokenizer::make("byte", "");
  const auto ids = t->encode(all);
  for (int b = 0; b < 256; ++b) EXPECT_EQ(ids[static_cast<size_t>(b)], b);
  EXPECT_EQ(t->decode(ids), all);
  EXPECT_EQ(t->vocab_size(), 256);
}

TEST(CharTokenizer, names_invalid_utf8_by_file_byte_and_offset) {
  for (const auto& [text, offset] : std::vector<std::pair<std::string, std::string>>{
           {"ab\xFFz", "102"}, {"\xC0\x80", "100"}, {"abc\xED\xA0\x80", "103"}, {"abcd\xE2\x82", "104"}}) {
    const auto m =
        message_of([&, t = text] { Tokenizer::make("char", t, {.name = "'my corpus.txt'", .offset = 100}); }, ErrorKind::kData);
    EXPECT_THAT(m, HasSubstr("'my corpus.txt' is not valid UTF-8"));
    EXPECT_THAT(m, HasSubstr("offset " + offset));
  }
  try {
    Tokenizer::make("char", "\xFF");
  } catch (const Error& e) {
    EXPECT_THAT(e.hint(), HasSubstr("byte"));
    EXPECT_THAT(e.what(), HasSubstr("0xFF"));
  }
}

TEST(CharTokenizer, names_a_character_of_the_prompt_that_it_does_not_know) {
  const auto t = Tokenizer::make("char", "abc");
  const auto m = message_of([&] { t->encode("ab€", {.name = "the prompt", .is_prompt = true}); }, ErrorKind::kUsage);
  EXPECT_THAT(m, HasSubstr("the prompt: character '€' (U+20AC) at byte offset 2"));
  EXPECT_THAT(message_of([&] { t->encode("\x07", {.name = "the prompt", .is_prompt = true}); }, ErrorKind::kUsage),
              HasSubstr("character U+0007 at"));
  EXPECT_THAT(message_of([&] { t->encode("d", {.name = "'val.txt'"}); }, ErrorKind::kData), HasSubstr("'d' (U+0064)"));
}

TEST(Tokenizer, refuses_ids_outside_the_vocabulary) {
  for (const char* kind : {"char", "byte"}) {
    const auto t = Tokenizer::make(kind, "abc");
    for (const int32_t id : {-1, static_cast<int32_t>(t->vocab_size()), INT32_MAX, INT32_MIN})
      EXPECT_THROW(t->decode(std::vector<int32_t>{id}), Error) << kind << id;
  }
}

TEST(Tokenizer, refuses_an_empty_corpus_and_an_unknown_kind) {
  EXPECT_THAT(message_of([] { Tokenizer::make("char", "", {.name = "'e.txt'"}); }, ErrorKind::kData),
              HasSubstr("'e.txt' is empty"));
  EXPECT_THAT(message_of([] { Tokenizer::make("bpe", "abc"); }, ErrorKind::kUsage), HasSubstr("\"bpe\""));
}

TEST(Tokenizer, survives_serialization) {
  const std::string text = "\0\x01\"\\\r\n\x7F\xEF\xBB\xBF€😀\xF4\x8F\xBF\xBF"s;
  for (const char* kind : {"char", "byte"}) {
    const auto t = Tokenizer::make(kind, text);
    const std::string bytes = t->serialize();
    const auto back = Tokenizer::deserialize(bytes);
    EXPECT_EQ(back->kind(), kind);
    EXPECT_EQ(back->serialize(), bytes);
    EXPECT_EQ(back->encode(text), t->encode(text));
    EXPECT_EQ(back->hash(), XXH3_64bits(bytes.data(), bytes.size()));
    EXPECT_EQ(nlohmann::json::parse(bytes)["kind"], kind);
  }
  EXPECT_NE(Tokenizer::make("char", "ab")->hash(), Tokenizer::make("char", "ac")->hash());
  EXPECT_EQ(Tokenizer::make("char", "ab")->hash(), Tokenizer::make("char", "bba")->hash());
}

TEST(Tokenizer, trusts_no_saved_form) {
  const std::string head = R"({"format":"rowan-tokenizer","version":1,)";
  const std::vector<std::pair<std::string, std::string>> table = {
      {"", "not a saved tokenizer"},
      {"hello", "not a saved tokenizer"},
      {"[1]", "not a saved tokenizer"},
      {"{}", "not a saved tokenizer"},
      {R"({"format":"other"})", "not a saved tokenizer"},
      {std::string(200000, '['), "nested deeper"},
      {R"({"format":"rowan-tokenizer"})", "version (none)"},
      {R"({"format":"rowan-tokenizer","version":2,"kind":"byte"})", "version 2"},
      {R"({"format":"rowan-tokenizer","version":"1","kind":"byte"})", "version \"1\""},
      {head + R"("kind":"bpe"})", "\"bpe\""},
      {head + R"("kind":3})", "\"kind\""},
      {head + R"("kind":"char"})", "needs \"characters\""},
      {head + R"("kind":"char","characters":[1]})", "needs \"characters\""},
      {head + R"("kind":"char","characters":""})", "is empty"},
      {head + R"("kind":"char","characters":"ba"})", "out of order"},
      {head + R"("kind":"char","characters":"aa"})", "out of order"},
      {head + "\"kind\":\"char\",\"characters\":\"\xFF\"}", "not a saved tokenizer"},
  };
  for (const auto& [bytes, expected] : table)
    EXPECT_THAT(message_of([&, b = bytes] { Tokenizer::deserialize(b, "t.json"); }, ErrorKind::kData), HasSubstr(expected))
        << bytes.substr(0, 80);
}

std::string stream(const std::string& bytes) {
  const std::shared_ptr<const Tokenizer> t = Tokenizer::make("byte", "");
  StreamDecoder decoder(t);
  std::string out;
  for (const int32_t id : t->encode(bytes)) {
    const std::string piece = decoder.push(id);
    for (size_t at = 0; at < piece.size();) {
      const Utf8Char c = read_utf8(std::string_view(piece).substr(at));
      EXPECT_EQ(c.status, Utf8Char::Status::kOk) << "a piece ends inside a character";
      at += static_cast<size_t>(c.length);
    }
    out += piece;
  }
  return out + decoder.finish();
}

TEST(StreamDecoder, holds_a_character_back_until_it_is_complete) {
  const std::shared_ptr<const Tokenizer> t = Tokenizer::make("byte", "");
  StreamDecoder decoder(t);
  EXPECT_EQ(decoder.push('a'), "a");
  for (int32_t id : {0xF0, 0x9F, 0x98}) EXPECT_EQ(decoder.push(id), "");
  EXPECT_EQ(decoder.push(0x80), "😀");
  EXPECT_EQ(decoder.finish(), "");
  EXPECT_EQ(stream("grüße €😀\r\n\0x"s), "grüße €😀\r\n\0x"s);
}

TEST(StreamDecoder, replaces_what_is_no_character_as_the_unicode_standard_does) {
  // Tables 3-8 to 3-11 of the Unicode Standard 15: one U+FFFD for each maximal subpart.
  const std::string r = "\xEF\xBF\xBD";
  EXPECT_EQ(stream("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"), r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(stream("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"), r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(stream("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"), r + r + r + r + r + "A" + r + r + "B");
  EXPECT_EQ(stream("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), r + r + r + r + "A");
  EXPECT_EQ(stream("end\xE2\x82"), "end" + r);
}

}  // namespace
}  // namespace rowan
