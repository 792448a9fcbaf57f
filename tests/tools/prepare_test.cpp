// rowan prepare, as a user runs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tests/support/run_command.h"
#include "tests/support/temp_dir.h"
#include "train/token_file.h"

namespace rowan {
namespace {

using test::CommandResult;
using test::run_command;
using test::TempDir;
using ::testing::HasSubstr;

std::string put(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

std::string text_in(const std::string& token_file) {
  const TokenFile file(token_file);
  std::vector<int32_t> ids(static_cast<size_t>(file.size()));
  file.read(0, ids);
  return file.tokenizer()->decode(ids);
}

TEST(Prepare, joins_texts_into_one_token_file) {
  const TempDir dir;
  const std::string out = dir.file("ünï code.tok");
  const CommandResult r =
      run_command({ROWAN_BINARY, "prepare", put(dir.file("a b.txt"), "hello "), put(dir.file("c.txt"), "wörld\r\n"), "--out", out});
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("13 tokens of 1 byte from 14 bytes of text; char tokenizer, 11 ids"));
  EXPECT_EQ(text_in(out), "hello wörld\r\n");
}

TEST(Prepare, takes_bytes_and_saved_tokenizers) {
  const TempDir dir;
  const std::string raw = put(dir.file("raw"), std::string("\xFF\x00\xFE", 3)), out = dir.file("raw.tok");
  EXPECT_EQ(run_command({ROWAN_BINARY, "prepare", raw, "--out", out, "--tokenizer", "byte"}).exit_code, 0);
  EXPECT_EQ(text_in(out), std::string("\xFF\x00\xFE", 3));
  const std::string a = put(dir.file("a.txt"), "abcd"), b = put(dir.file("b.txt"), "dcb");
  EXPECT_EQ(run_command({ROWAN_BINARY, "prepare", a, "--out", dir.file("a.tok")}).exit_code, 0);
  EXPECT_EQ(run_command({ROWAN_BINARY, "prepare", b, "--out", dir.file("b.tok"), "--tokenizer", dir.file("a.tok")}).exit_code, 0);
  EXPECT_EQ(TokenFile(dir.file("b.tok")).tokenizer()->vocab_size(), 4);
  EXPECT_EQ(text_in(dir.file("b.tok")), "dcb");
}

TEST(Prepare, is_the_same_file_every_time) {
  const TempDir dir;
  const std::string a = put(dir.file("a.txt"), "to be or not to be");
  for (const char* out : {"1.tok", "2.tok"})
    EXPECT_EQ(run_command({ROWAN_BINARY, "prepare", a, "--out", dir.file(out)}).exit_code, 0);
  const auto bytes = [&](const char* name) {
    std::ifstream in(dir.file(name), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  EXPECT_EQ(bytes("1.tok"), bytes("2.tok"));
}

TEST(Prepare, says_what_is_wrong_and_leaves_nothing) {
  const TempDir dir;
  const std::string text = put(dir.file("a.txt"), "abc"), out = dir.file("out.tok"), old = put(dir.file("old.tok"), "precious");
  const std::string pipe = dir.file("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  struct Case {
    std::vector<std::string> arguments;
    int exit_code;
    std::string message;
  };
  const std::vector<Case> table = {
      {{text}, 2, "--out"},
      {{"--out", out}, 2, "inputs"},
      {{dir.file("none.txt"), "--out", out}, 1, "none.txt': No such file"},
      {{dir.path().string(), "--out", out}, 1, "is a directory"},
      {{put(dir.file("empty"), ""), "--out", out}, 1, "empty' is empty"},
      {{put(dir.file("empty"), ""), "--out", out, "--tokenizer", "byte"}, 1, "empty' is empty"},
      {{put(dir.file("bad"), "ab\xC0\x80"), "--out", out}, 1, "bad' is not valid UTF-8: unexpected byte 0xC0 at byte offset 2"},
      {{text, "--out", old}, 1, "old.tok': File exists"},
      {{text, "--out", dir.path().string(), "--overwrite"}, 1, "is a directory"},
      {{text, "--out", pipe, "--overwrite"}, 1, "pipe' is not a regular file"},
      {{text, "--out", text, "--overwrite"}, 2, "a.txt' is not a token file, and --overwrite replaces nothing else"},
      {{text, "--out", old, "--overwrite"}, 2, "old.tok' is not a token file"},
      {{text, "--out", dir.file("no/out.tok")}, 1, "No such file"},
      {{text, "--out", "/proc/out.tok"}, 1, "/proc/"},
      {{text, "--out", out, "--tokenizer", "bpe"}, 2, "\"bpe\""},
      {{text, "--out", out, "--tokenizer", text}, 1, "is not a saved tokenizer"},
  };
  for (const Case& c : table) {
    std::vector<std::string> command = {ROWAN_BINARY, "prepare"};
    command.insert(command.end(), c.arguments.begin(), c.arguments.end());
    const CommandResult r = run_command(command);
    EXPECT_EQ(r.exit_code, c.exit_code) << r.err;
    EXPECT_THAT(r.err, HasSubstr("rowan: error: "));
    EXPECT_THAT(r.err, HasSubstr(c.message));
    EXPECT_EQ(r.out, "");
    EXPECT_FALSE(std::filesystem::exists(out)) << r.err;
  }
  for (const auto& entry : std::filesystem::directory_iterator(dir.path()))
    EXPECT_THAT(entry.path().string(), ::testing::Not(HasSubstr(".tmp-")));
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
}

TEST(Prepare, overwrites_a_token_file_when_asked_and_takes_none_as_a_text) {
  const TempDir dir;
  const std::string text = put(dir.file("a.txt"), "abc"), longer = put(dir.file("b.txt"), "abcabc"), out = dir.file("out.tok");
  EXPECT_EQ(run_command({ROWAN_BINARY, "prepare", text, "--out", out}).exit_code, 0);
  EXPECT_EQ(run_command({ROWAN_BINARY, "prepare", longer, "--out", out, "--overwrite"}).exit_code, 0);
  EXPECT_EQ(text_in(out), "abcabc");
  const CommandResult twice = run_command({ROWAN_BINARY, "prepare", out, "--out", dir.file("twice.tok")});
  EXPECT_EQ(twice.exit_code, 2);
  EXPECT_THAT(twice.err, HasSubstr("is a token file already"));
}

}  // namespace
}  // namespace rowan
