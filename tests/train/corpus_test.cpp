#include "train/corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "core/error.h"
#include "tests/support/temp_dir.h"
#include "train/text_file.h"
#include "train/token_file_writer.h"

namespace rowan {
namespace {

using test::TempDir;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string put(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

std::string prepared(const std::string& path, const std::string& text, const std::string& tokenizer) {
  TokenFileWriter writer(path, *open_tokenizer(tokenizer, {text}), IfExists::kRefuse);
  encode_pieces({text}, *open_tokenizer(tokenizer, {text}),
                [&](std::span<const int32_t> ids, int64_t bytes) { writer.append(ids, bytes); });
  writer.publish();
  return path;
}

DataConfig config_for(std::vector<std::string> train, int64_t seq_len = 4) {
  DataConfig config;
  config.train = std::move(train);
  config.seq_len = seq_len;
  return config;
}

std::string error_of(const std::function<void()>& f, ErrorKind kind = ErrorKind::kData) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    return std::string(e.what()) + " hint: " + e.hint();
  }
  return "";
}

std::string text_of(const Examples& examples, const Tokenizer& tokenizer) {
  std::string out;
  const size_t t = static_cast<size_t>(examples.seq_len());
  std::vector<int32_t> x(t), y(t);
  for (int64_t start = 0; start < examples.targets(); start += examples.seq_len()) {
    examples.read(start, x, y);
    if (start == 0) out += tokenizer.decode(std::span(x).first(1));
    for (int32_t id : y)
      if (id != kIgnored) tokenizer.append_token(id, out);
  }
  return out;
}

TEST(Corpus, gives_the_first_nine_tenths_to_training_as_nanogpt_does) {
  const TempDir dir;
  const std::string text = "abcdefghijklmnopqrstuvwxyz€";  // 27 characters: int(27 * 0.9) = 24
  const Corpus corpus = open_corpus(config_for({put(dir.file("a.txt"), text)}));
  EXPECT_EQ(corpus.tokenizer->vocab_size(), 27) << "of the whole text";
  EXPECT_EQ(text_of(*corpus.train, *corpus.tokenizer), "abcdefghijklmnopqrstuvwx");
  EXPECT_EQ(text_of(*corpus.val, *corpus.tokenizer), "yz€");
}

TEST(Corpus, splits_the_shakespeare_text_at_nanogpts_place) {
  const TempDir dir;  // nanoGPT's README: 1,115,394 characters, 1,003,854 train, 111,540 validate
  const Corpus corpus = open_corpus(config_for({put(dir.file("a.txt"), std::string(1115394, 'x'))}, 64));
  EXPECT_EQ(corpus.train->targets() + 1, 1003854);
  EXPECT_EQ(corpus.val->targets() + 1, 111540);
}

TEST(Corpus, takes_several_files_as_one_text_and_validates_on_others) {
  const TempDir dir;
  DataConfig config = config_for({put(dir.file("a 1.txt"), "hello "), put(dir.file("ü.txt"), "world")});
  config.val = {put(dir.file("v.txt"), "low")};
  const Corpus corpus = open_corpus(config);
  EXPECT_EQ(text_of(*corpus.train, *corpus.tokenizer), "hello world");
  EXPECT_EQ(text_of(*corpus.val, *corpus.tokenizer), "low");
  config.val = {""};
  config.val_fraction = 0;
  EXPECT_EQ(open_corpus(config).val, nullptr);
}

TEST(Corpus, keeps_crlf_bom_and_nul) {
  const TempDir dir;
  const std::string text("\xEF\xBB\xBFone\r\ntwo\0three\n", 18);
  for (const char* tokenizer : {"char", "byte"}) {
    DataConfig config = config_for({put(dir.file("a.txt"), text)});
    config.tokenizer = tokenizer;
    config.val_fraction = 0;
    const Corpus corpus = open_corpus(config);
    EXPECT_EQ(text_of(*corpus.train, *corpus.tokenizer), text);
  }
}

TEST(Corpus, is_the_same_from_a_text_and_from_its_token_file) {
  const TempDir dir;
  const std::string text =
      put(dir.file("a.txt"), "So shaken as we are, so wan with care, find we a time for frighted peace to pant");
  const Corpus a = open_corpus(config_for({text})), b = open_corpus(config_for({prepared(dir.file("a.tok"), text, "char")}));
  EXPECT_EQ(a.train->fingerprint(), b.train->fingerprint());
  EXPECT_EQ(a.val->fingerprint(), b.val->fingerprint());
  EXPECT_NE(a.train->fingerprint(), a.val->fingerprint());
  EXPECT_EQ(a.tokenizer->serialize(), b.tokenizer->serialize());
  EXPECT_EQ(text_of(*a.train, *a.tokenizer), text_of(*b.train, *b.tokenizer));
  put(text, "So shaken as we are, so wan with care, find we a time for frighted peace to pank");
  EXPECT_NE(open_corpus(config_for({text})).val->fingerprint(), a.val->fingerprint());
}

TEST(Corpus, takes_a_saved_tokenizer_by_path) {
  const TempDir dir;
  const auto saved = Tokenizer::make("char", "abcdefg");
  DataConfig config = config_for({put(dir.file("a.txt"), "bad cafe, no: deadbeef")});
  config.tokenizer = put(dir.file("tokenizer.json"), saved->serialize());
  EXPECT_THAT(error_of([&] { open_corpus(config); }), HasSubstr("character ' ' (U+0020) at byte offset 3"));
  put(dir.file("a.txt"), "badcafedeadbeef");
  EXPECT_EQ(open_corpus(config).tokenizer->hash(), saved->hash());
  config.tokenizer = prepared(dir.file("a.tok"), dir.file("a.txt"), config.tokenizer);
  EXPECT_EQ(open_corpus(config).tokenizer->hash(), saved->hash()) << "a token file holds its tokenizer";
  config.tokenizer = dir.file("a.txt");
  EXPECT_THAT(error_of([&] { open_corpus(config); }), HasSubstr("not a saved tokenizer"));
  config.tokenizer = "chars";
  EXPECT_THAT(error_of([&] { open_corpus(config); }, ErrorKind::kUsage), AllOf(HasSubstr("\"chars\""), HasSubstr("char")));
}

TEST(Corpus, refuses_token_files_of_another_tokenizer) {
  const TempDir dir;
  const std::string text = put(dir.file("a.txt"), "some text to train on"), other = put(dir.file("b.txt"), "other letters: XYZ");
  const std::string a = prepared(dir.file("a.tok"), text, "char"), b = prepared(dir.file("b.tok"), other, "char");
  EXPECT_THAT(error_of([&] { open_corpus(config_for({a, b})); }), HasSubstr("b.tok' was made with another tokenizer"));
  EXPECT_THAT(error_of([&] { open_corpus(config_for({a}), Tokenizer::make("byte", "")); }), HasSubstr("another tokenizer"));
  EXPECT_THAT(error_of([&] { open_corpus(config_for({a, other})); }, ErrorKind::kUsage), HasSubstr("can't be mixed"));
  DataConfig config = config_for({a});
  config.val = {prepared(dir.file("c.tok"), other, dir.file("b.tok"))};
  EXPECT_THAT(error_of([&] { open_corpus(config); }), HasSubstr("c.tok' was made with another tokenizer"));
}

TEST(Corpus, says_what_is_wrong_with_a_file) {
  const TempDir dir;
  const auto error = [&](const std::string& path) { return error_of([&] { open_corpus(config_for({path})); }); };
  EXPECT_THAT(error(dir.file("missing.txt")), HasSubstr("missing.txt': No such file"));
  EXPECT_THAT(error(dir.path().string()), HasSubstr("is a directory"));
  EXPECT_THAT(error(put(dir.file("empty.txt"), "")), HasSubstr("empty.txt' is empty"));
  EXPECT_THAT(error(put(dir.file("short.txt"), "abcd")),
              AllOf(HasSubstr("has 3 tokens"), HasSubstr("seq_len = 4 needs at least 5")));
  EXPECT_THAT(error(put(dir.file("latin1.txt"), "na\xEFve")),
              AllOf(HasSubstr("latin1.txt' is not valid UTF-8"), HasSubstr("offset 2"), HasSubstr("byte")));
  ASSERT_EQ(mkfifo(dir.file("pipe").c_str(), 0600), 0);
  EXPECT_THAT(error(dir.file("pipe")), HasSubstr("pipe"));
  EXPECT_THAT(error("/dev/null"), HasSubstr("device"));
  EXPECT_THAT(error_of([&] { open_corpus(config_for({})); }, ErrorKind::kUsage), HasSubstr("data.train is not set"));
  DataConfig byte = config_for({dir.file("empty.txt")});
  byte.tokenizer = "byte";
  EXPECT_THAT(error_of([&] { open_corpus(byte); }), HasSubstr("0 tokens"));
  DataConfig one = config_for({put(dir.file("ten.txt"), "0123456789")});
  EXPECT_THAT(error_of([&] { open_corpus(one); }),
              AllOf(HasSubstr("validating part"), HasSubstr("has 1 tokens"), HasSubstr("at least 2")));
}

TEST(Corpus, of_built_in_data_stands_alone) {
  Corpus corpus = open_corpus(config_for({"builtin:sort"}, 11));
  EXPECT_EQ(corpus.train->starts(), 729);
  EXPECT_EQ(corpus.val, corpus.train);
  EXPECT_EQ(corpus.tokenizer->vocab_size(), 3);
  DataConfig mixed = config_for({"builtin:sort", "a.txt"}, 11);
  EXPECT_THAT(error_of([&] { open_corpus(mixed); }, ErrorKind::kUsage), HasSubstr("stands alone"));
  DataConfig validated = config_for({"builtin:sort"}, 11);
  validated.val = {"a.txt"};
  EXPECT_THAT(error_of([&] { open_corpus(validated); }, ErrorKind::kUsage), HasSubstr("leave data.val empty"));
  EXPECT_EQ(open_split({"builtin:sort"}, corpus.tokenizer, config_for({}, 11), "--data")->targets(), 729 * 6);
  EXPECT_THAT(error_of([&] { open_split({"builtin:sort"}, Tokenizer::make("byte", ""), config_for({}, 11), "--data"); }),
              HasSubstr("another tokenizer"));
}

TEST(TextFile, pieces_never_cut_a_character_and_miss_nothing) {
  const TempDir dir;
  // Characters of 3 bytes shifted by 0, 1, 2: some piece boundary falls inside one.
  for (const int shift : {0, 1, 2}) {
    std::string text(static_cast<size_t>(shift), 'a');
    while (text.size() < (5u << 19)) text += "€";
    std::string joined;
    const int64_t bytes = read_pieces(put(dir.file("a.txt"), text), [&](std::string_view piece, int64_t at) {
      EXPECT_EQ(at, static_cast<int64_t>(joined.size()));
      EXPECT_NE(static_cast<unsigned char>(piece[0]) & 0xC0, 0x80) << "begins inside a character";
      joined += piece;
    });
    EXPECT_EQ(bytes, static_cast<int64_t>(text.size()));
    EXPECT_TRUE(joined == text);
  }
}

TEST(TextFile, passes_on_bytes_that_are_not_utf8) {
  const TempDir dir;
  std::string text(3u << 20, '\x80');
  text += "\xE2\x82";
  std::string joined;
  read_pieces(put(dir.file("a.bin"), text), [&](std::string_view piece, int64_t) { joined += piece; });
  EXPECT_TRUE(joined == text);
}

TEST(TokenChain, reads_across_the_borders_of_its_parts) {
  std::vector<std::shared_ptr<const Tokens>> parts;
  std::vector<int32_t> all;
  for (const int64_t n : {3, 0, 1, 5, 0}) {
    auto part = std::make_shared<PackedTokens>(1000, 1);
    for (int64_t i = 0; i < n; ++i) {
      all.push_back(static_cast<int32_t>(all.size() * 7 + 300));
      part->append(std::span(all).last(1));
    }
    parts.push_back(part);
  }
  const TokenChain chain(parts);
  ASSERT_EQ(chain.size(), 9);
  for (int64_t first = 0; first <= 9; ++first)
    for (int64_t n = 0; first + n <= 9; ++n) {
      std::vector<int32_t> got(static_cast<size_t>(n));
      chain.read(first, got);
      EXPECT_EQ(got, std::vector<int32_t>(all.begin() + first, all.begin() + first + n));
    }
}

}  // namespace
}  // namespace rowan
