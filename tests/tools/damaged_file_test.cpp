// `rowan inspect --verify` on damaged copies of a small checkpoint: every one is reported, none crashes it, hangs it, or makes it
// take more than 256 MB.
//
// ROWAN_DAMAGE_STRIDE=1 covers every byte and every length (minutes, tools/nightly.sh); by default every 151st.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>

#include "tests/support/command_run.h"

namespace rowan::test {
namespace {

constexpr long kMostMemory = 256 << 10;  // KiB, as ru_maxrss
constexpr double kMostSeconds = 20;      // of a command that takes a tenth of one, on a machine with other things to do

size_t stride() {
  const char* text = std::getenv("ROWAN_DAMAGE_STRIDE");
  return text == nullptr ? 151 : static_cast<size_t>(std::max(1L, std::strtol(text, nullptr, 10)));
}

class DamagedFile : public ::testing::Test {
 protected:
  // What the program says of these bytes. Checks all but the exit code's value.
  int verify(const std::string& bytes, const std::string& when) {
    run_.write("c.h5", bytes);
    const CommandResult r = run_command({ROWAN_BINARY, "inspect", "--verify", run_.path("c.h5")}, {.limit_seconds = kMostSeconds});
    EXPECT_FALSE(r.timed_out) << when;
    EXPECT_EQ(r.signal, 0) << when;
    EXPECT_EQ(r.err.find("rowan: error: ") != std::string::npos, r.exit_code == 1) << when << r.err;
    EXPECT_EQ(r.out.find("DAMAGED") != std::string::npos, r.exit_code == 1) << when << r.out;
    return r.exit_code;
  }
  // The largest of all the commands so far.
  static void expect_little_memory() {
    rusage usage{};
    ASSERT_EQ(getrusage(RUSAGE_CHILDREN, &usage), 0);
#ifndef ROWAN_SANITIZED  // whose shadow counts
    EXPECT_LE(usage.ru_maxrss, kMostMemory);
#endif
    std::printf("largest resident size %ld KiB\n", usage.ru_maxrss);
  }

  const CommandRun run_;
  const std::string good_ = read_all(std::string(ROWAN_FIXTURES) + "/checkpoint_v1.h5");
};

TEST_F(DamagedFile, every_changed_byte_is_reported) {
  EXPECT_EQ(verify(good_, "undamaged"), 0);
  int changes = 0;
  for (size_t at = 0; at < good_.size(); at += stride(), ++changes) {
    std::string bad = good_;
    bad[at] = static_cast<char>(bad[at] ^ (1 << at % 8));
    EXPECT_EQ(verify(bad, "byte " + std::to_string(at)), 1) << at;
  }
  std::printf("%d of %zu bytes changed, ", changes, good_.size());
  expect_little_memory();
}

TEST_F(DamagedFile, every_truncation_is_reported) {
  int lengths = 0;
  for (size_t length = 0; length < good_.size(); length += stride(), ++lengths)
    EXPECT_EQ(verify(good_.substr(0, length), "length " + std::to_string(length)), 1) << length;
  std::printf("%d lengths, ", lengths);
  expect_little_memory();
}

}  // namespace
}  // namespace rowan::test
