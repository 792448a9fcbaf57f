#include "train/token_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>
#include <sstream>

#include "core/error.h"
#include "core/rng.h"
#include "tests/support/temp_dir.h"
#include "train/token_file_writer.h"
#include "train/tokenizer_char.h"

namespace rowan {
namespace {

using test::TempDir;
using ::testing::HasSubstr;

// A char vocabulary of n code points from U+0001 on, without the surrogates.
std::shared_ptr<const Tokenizer> vocabulary(int64_t n) {
  std::vector<char32_t> characters;
  for (char32_t c = 1; static_cast<int64_t>(characters.size()) < n; ++c)
    if (c < 0xD800 || c > 0xDFFF) characters.push_back(c);
  return std::make_shared<CharTokenizer>(characters);
}

std::vector<int32_t> random_ids(int64_t n, int64_t vocab) {
  std::vector<int32_t> ids(static_cast<size_t>(n));
  for (size_t i = 0; i < ids.size(); ++i)
    ids[i] = static_cast<int32_t>(random_below({.seed = 1, .purpose = Purpose::kTest}, i, static_cast<uint64_t>(vocab)));
  return ids;
}

void write_tokens(const std::string& path, const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  TokenFileWriter writer(path, tokenizer, IfExists::kReplace);
  const size_t half = ids.size() / 3;  // in pieces that match no chunk
  writer.append(std::span(ids).first(half), 10);
  writer.append(std::span(ids).subspan(half), 20);
  writer.publish();
}

std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

void put(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

void put_byte(const std::string& path, size_t at, char byte) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(at));
  file.put(byte);
}

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kData) << e.what();
    return e.what();
  }
  return "";
}

TEST(TokenFile, gives_back_what_was_written_at_every_width) {
  const TempDir dir;
  for (const auto& [vocab, width] : std::vector<std::pair<int64_t, int>>{
           {1, 1}, {255, 1}, {256, 1}, {257, 2}, {65535, 2}, {65536, 2}, {65537, 4}, {100000, 4}}) {
    for (const int64_t n : {int64_t{1}, int64_t{1000}, TokenDigest::kChunk, TokenDigest::kChunk * 2 + 1}) {
      const auto tokenizer = vocabulary(vocab);
      std::vector<int32_t> ids = random_ids(n, vocab);
      ids.back() = static_cast<int32_t>(vocab - 1);
      const std::string path = dir.file("with spaces and ünïcödé " + std::to_string(vocab) + ".tok");
      write_tokens(path, *tokenizer, ids);
      const TokenFile file(path);
      EXPECT_EQ(file.token_bytes(), width);
      ASSERT_EQ(file.size(), n);
      EXPECT_EQ(file.text_bytes(), 30);
      EXPECT_EQ(file.tokenizer()->hash(), tokenizer->hash());
      std::vector<int32_t> back(static_cast<size_t>(n));
      file.read(0, back);
      EXPECT_EQ(back, ids) << vocab;
      file.verify();
    }
  }
}

TEST(TokenFile, reads_any_window) {
  const TempDir dir;
  const int64_t n = TokenDigest::kChunk * 2 + 777;
  const auto ids = random_ids(n, 300);
  write_tokens(dir.file("t.tok"), *vocabulary(300), ids);
  for (const int64_t first :
       {int64_t{0}, int64_t{1}, TokenDigest::kChunk - 1, TokenDigest::kChunk, TokenDigest::kChunk * 2 - 5, n - 9}) {
    const TokenFile file(dir.file("t.tok"));
    std::vector<int32_t> window(9);
    file.read(first, window);
    EXPECT_EQ(window, std::vector<int32_t>(ids.begin() + first, ids.begin() + first + 9)) << first;
  }
}

TEST(TokenFile, is_laid_out_as_its_header_says) {
  const TempDir dir;
  const auto tokenizer = vocabulary(300);
  const auto ids = random_ids(5, 300);
  write_tokens(dir.file("t.tok"), *tokenizer, ids);
  const std::string bytes = contents(dir.file("t.tok"));
  const std::string saved = tokenizer->serialize();
  ASSERT_EQ(bytes.size(), 128 + 5 * 2 + 8 + saved.size());
  EXPECT_EQ(bytes.substr(0, 8), "ROWANTOK");
  const auto u64 = [&](size_t at) {
    uint64_t v;
    std::memcpy(&v, bytes.data() + at, 8);
    return v;
  };
  EXPECT_EQ(u64(24), 5u);
  EXPECT_EQ(u64(32), 300u);
  EXPECT_EQ(u64(40), XXH3_64bits(saved.data(), saved.size()));
  EXPECT_EQ(u64(120), XXH3_64bits(bytes.data(), 120));
  EXPECT_EQ(u64(138), XXH3_64bits(bytes.data() + 128, 10));
  for (size_t i = 0; i < 5; ++i) {
    uint16_t id;
    std::memcpy(&id, bytes.data() + 128 + 2 * i, 2);
    EXPECT_EQ(id, ids[i]);
  }
  EXPECT_EQ(bytes.substr(146), saved);
}

TEST(TokenFile, has_the_fingerprint_of_the_same_tokens_in_memory) {
  const TempDir dir;
  const auto tokenizer = vocabulary(300);
  auto ids = random_ids(TokenDigest::kChunk + 5, 300);
  write_tokens(dir.file("t.tok"), *tokenizer, ids);
  PackedTokens memory(300, tokenizer->hash());
  memory.append(ids);
  EXPECT_EQ(TokenFile(dir.file("t.tok")).fingerprint(), memory.fingerprint());
  EXPECT_EQ(memory.fingerprint().size(), 32u);
  ids[TokenDigest::kChunk + 1] ^= 1;
  PackedTokens other(300, tokenizer->hash());
  other.append(ids);
  EXPECT_NE(other.fingerprint(), memory.fingerprint());
}

TEST(TokenFile, detects_every_changed_byte) {
  const TempDir dir;
  const std::string path = dir.file("t.tok");
  write_tokens(path, *vocabulary(40), random_ids(50, 40));
  const std::string good = contents(path);
  for (size_t at = 0; at < good.size(); ++at) {
    for (const int flip : {0x01, 0x80, 0xFF}) {
      put_byte(path, at, static_cast<char>(good[at] ^ flip));
      EXPECT_NE(error_of([&] { TokenFile(path).verify(); }), "") << "byte " << at;
    }
    put_byte(path, at, good[at]);
  }
  EXPECT_EQ(error_of([&] { TokenFile(path).verify(); }), "");
}

TEST(TokenFile, detects_truncation_at_every_length_and_extra_bytes) {
  const TempDir dir;
  const std::string path = dir.file("t.tok");
  write_tokens(path, *vocabulary(40), random_ids(50, 40));
  const std::string good = contents(path);
  for (size_t n = good.size(); n-- > 0;) {
    std::filesystem::resize_file(path, n);
    EXPECT_NE(error_of([&] { TokenFile file(path); }), "") << n;
  }
  put(path, good + "x");
  EXPECT_THAT(error_of([&] { TokenFile file(path); }), HasSubstr("its header describes"));
}

TEST(TokenFile, names_the_field_of_the_header_that_is_wrong) {
  const TempDir dir;
  const std::string path = dir.file("t.tok");
  write_tokens(path, *vocabulary(40), random_ids(50, 40));
  const std::string good = contents(path);
  // The header is signed anew, as a hostile file's would be.
  const auto error_with = [&](const std::function<void(TokenFileHeader&)>& change) {
    TokenFileHeader h;
    std::memcpy(&h, good.data(), sizeof h);
    change(h);
    h.header_hash = hash_header(h);
    std::string bad = good;
    std::memcpy(bad.data(), &h, sizeof h);
    put(path, bad);
    return error_of([&] { TokenFile(path).verify(); });
  };
  EXPECT_THAT(error_with([](auto& h) { h.magic[0] = 'X'; }), HasSubstr("ROWANTOK"));
  EXPECT_THAT(error_with([](auto& h) { h.version = 2; }), HasSubstr("version 2; this program reads version 1"));
  EXPECT_THAT(error_with([](auto& h) { h.header_bytes = 64; }), HasSubstr("header of 128"));
  EXPECT_THAT(error_with([](auto& h) { h.chunk_tokens = 0; }), HasSubstr("chunks of 65536"));
  EXPECT_THAT(error_with([](auto& h) { h.token_bytes = 2; }), HasSubstr("2 bytes a token"));
  EXPECT_THAT(error_with([](auto& h) { h.token_bytes = 0; }), HasSubstr("0 bytes a token"));
  EXPECT_THAT(error_with([](auto& h) { h.vocab_size = 0; }), HasSubstr("vocabulary size 0"));
  EXPECT_THAT(error_with([](auto& h) { h.vocab_size = UINT64_MAX; }), HasSubstr("vocabulary size"));
  EXPECT_THAT(error_with([](auto& h) { h.vocab_size = 41; }), HasSubstr("a vocabulary of 41, its tokenizer one of 40"));
  EXPECT_THAT(error_with([](auto& h) { h.tokens = 51; }), HasSubstr("its header describes"));
  EXPECT_THAT(error_with([](auto& h) { h.tokens = UINT64_MAX; }), HasSubstr("its header describes"));
  EXPECT_THAT(error_with([](auto& h) { h.tokens = uint64_t{1} << 63; }), HasSubstr("its header describes"));
  EXPECT_THAT(error_with([](auto& h) { h.tokenizer_bytes = UINT64_MAX - 100; }), HasSubstr("its header describes"));
  EXPECT_THAT(error_with([](auto& h) { h.vocab_hash ^= 1; }), HasSubstr("the tokenizer is damaged"));
  EXPECT_THAT(error_with([](auto& h) { h.chunks_hash ^= 1; }), HasSubstr("table of checksums"));
  EXPECT_EQ(error_with([](auto&) {}), "");
}

// The token at `index` becomes `id`, and all checksums are made to fit.
void forge(const std::string& path, int64_t index, uint32_t id) {
  std::string bytes = contents(path);
  TokenFileHeader h;
  std::memcpy(&h, bytes.data(), sizeof h);
  const size_t length = h.tokens * h.token_bytes;
  std::memcpy(bytes.data() + sizeof h + static_cast<size_t>(index) * h.token_bytes, &id, h.token_bytes);
  const uint64_t chunk = XXH3_64bits(bytes.data() + sizeof h, length);  // the file has one chunk
  std::memcpy(bytes.data() + sizeof h + length, &chunk, sizeof chunk);
  h.chunks_hash = XXH3_64bits(&chunk, sizeof chunk);
  h.header_hash = hash_header(h);
  std::memcpy(bytes.data(), &h, sizeof h);
  put(path, bytes);
}

TEST(TokenFile, checks_every_id_even_when_all_checksums_fit) {
  const TempDir dir;
  const std::string path = dir.file("t.tok");
  write_tokens(path, *vocabulary(40), random_ids(50, 40));
  forge(path, 7, 40);
  const TokenFile file(path);
  std::vector<int32_t> window(5);
  file.read(0, window);
  EXPECT_THAT(error_of([&] { file.read(5, window); }), HasSubstr("id 40 at token 7 is outside the vocabulary of 40"));
  write_tokens(path, *vocabulary(70000), random_ids(50, 70000));
  for (const uint32_t id : {70000u, 0x7FFFFFFFu, 0x80000000u, 0xFFFFFFFFu}) {
    forge(path, 3, id);
    EXPECT_THAT(error_of([&] { TokenFile(path).verify(); }), HasSubstr("id " + std::to_string(id) + " at token 3"));
  }
}

TEST(TokenFileWriter, publishes_nothing_with_an_id_outside_the_vocabulary) {
  const TempDir dir;
  EXPECT_NE(error_of([&] { write_tokens(dir.file("t.tok"), *vocabulary(40), {1, 2, 40}); }), "");
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST(TokenFile, that_shrinks_while_in_use_is_an_error) {
  const TempDir dir;
  const std::string path = dir.file("t.tok");
  write_tokens(path, *vocabulary(40), random_ids(3 * TokenDigest::kChunk, 40));
  const TokenFile file(path);
  std::vector<int32_t> window(64);
  file.read(0, window);
  std::filesystem::resize_file(path, 200);
  EXPECT_THAT(error_of([&] { file.read(2 * TokenDigest::kChunk, window); }), HasSubstr("cut off or shrank"));
  EXPECT_THAT(error_of([&] { file.read(1000, window); }), HasSubstr("cut off or shrank")) << "a chunk that was checked before";
}

TEST(TokenFile, past_4_gib_reads_at_the_right_place) {
  const TempDir dir;
  const std::string path = dir.file("large.tok");
  // 2^32 + 100 tokens of one byte in a sparse file. All chunks but the last hold zeros.
  const auto tokenizer = vocabulary(40);
  const std::string saved = tokenizer->serialize();
  TokenFileHeader h{};
  std::memcpy(h.magic, kTokenFileMagic, 8);
  h.version = 1;
  h.header_bytes = 128;
  h.token_bytes = 1;
  h.chunk_tokens = TokenDigest::kChunk;
  h.tokens = (uint64_t{1} << 32) + 100;
  h.vocab_size = 40;
  h.vocab_hash = tokenizer->hash();
  h.tokenizer_bytes = saved.size();
  const std::vector<char> zeros(TokenDigest::kChunk, 0);
  std::vector<uint64_t> chunks((uint64_t{1} << 32) / TokenDigest::kChunk, XXH3_64bits(zeros.data(), zeros.size()));
  std::string tail(100, '\1');
  tail[42] = 17;
  chunks.push_back(XXH3_64bits(tail.data(), tail.size()));
  h.chunks_hash = XXH3_64bits(chunks.data(), chunks.size() * 8);
  h.header_hash = hash_header(h);
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(&h), sizeof h);
  out.seekp(static_cast<std::streamoff>(128 + (uint64_t{1} << 32)));
  out << tail;
  out.write(reinterpret_cast<const char*>(chunks.data()), static_cast<std::streamsize>(chunks.size() * 8));
  out << saved;
  out.close();
  const TokenFile file(path);
  EXPECT_EQ(file.size(), (int64_t{1} << 32) + 100);
  std::vector<int32_t> window(3);
  file.read((int64_t{1} << 32) + 41, window);
  EXPECT_EQ(window, (std::vector<int32_t>{1, 17, 1}));
  file.read((int64_t{1} << 32) - 2, window);
  EXPECT_EQ(window, (std::vector<int32_t>{0, 0, 1}));
}

TEST(TokenFileWriter, never_replaces_a_file_unasked) {
  const TempDir dir;
  put(dir.file("t.tok"), "precious");
  EXPECT_THAT(error_of([&] { TokenFileWriter w(dir.file("t.tok"), *vocabulary(4), IfExists::kRefuse); }), HasSubstr("File exists"));
  EXPECT_EQ(contents(dir.file("t.tok")), "precious");
  EXPECT_THAT(error_of([&] { TokenFileWriter w(dir.path().string(), *vocabulary(4), IfExists::kReplace); }),
              HasSubstr("directory"));
  EXPECT_THAT(error_of([&] { TokenFileWriter w(dir.file("no/such/t.tok"), *vocabulary(4), IfExists::kRefuse); }),
              HasSubstr("No such file"));
}

TEST(TokenFileWriter, leaves_nothing_behind_when_it_is_given_up) {
  const TempDir dir;
  {
    TokenFileWriter writer(dir.file("t.tok"), *vocabulary(4), IfExists::kRefuse);
    writer.append(random_ids(100, 4), 100);
  }
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

// Fails the n-th call that changes something.
struct FailingFiles : FileSystem {
  int fail_at = 0, calls = 0, code = ENOSPC;
  bool fails() {
    if (++calls != fail_at) return false;
    errno = code;
    return true;
  }
  ssize_t pwrite(int fd, const void* data, size_t n, int64_t at) override {
    return fails() ? -1 : FileSystem::pwrite(fd, data, n, at);
  }
  int fsync(int fd) override { return fails() ? -1 : FileSystem::fsync(fd); }
  int close(int fd) override {
    const int result = FileSystem::close(fd);
    return fails() ? -1 : result;
  }
  int rename(const std::string& a, const std::string& b) override { return fails() ? -1 : FileSystem::rename(a, b); }
  int rename_new(const std::string& a, const std::string& b) override { return fails() ? -1 : FileSystem::rename_new(a, b); }
};

TEST(TokenFileWriter, publishes_a_whole_file_or_none_whatever_call_fails) {
  for (const int code : {ENOSPC, EIO}) {
    bool done = false;
    int failures = 0;
    for (int n = 1; !done; ++n) {
      ASSERT_LT(n, 100);
      const TempDir dir;
      FailingFiles files;
      files.fail_at = n;
      files.code = code;
      const std::string path = dir.file("t.tok");
      try {
        TokenFileWriter writer(path, *vocabulary(4), IfExists::kRefuse, files);
        writer.append(random_ids(100, 4), 100);
        writer.publish();
        done = files.calls < n;
      } catch (const Error& e) {
        ++failures;
        EXPECT_EQ(e.kind(), ErrorKind::kData);
      }
      if (std::filesystem::exists(path)) TokenFile(path).verify();  // only the flush of the folder came after
      for (const auto& entry : std::filesystem::directory_iterator(dir.path())) EXPECT_EQ(entry.path().filename(), "t.tok");
    }
    EXPECT_GE(failures, 8);
  }
}

}  // namespace
}  // namespace rowan
