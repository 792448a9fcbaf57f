// metrics.jsonl: whole lines only, each step once.
#include "train/metrics_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/faulty_files.h"
#include "tests/support/temp_dir.h"

namespace rowan {
namespace {

using test::FaultyFiles;
using test::TempDir;
using testing::HasSubstr;

std::string content(const std::string& path) {
  return read_text(path, 1 << 20);
}

std::string line(int step) {
  return "{\"event\":\"train\",\"step\":" + std::to_string(step) + "}";
}

TEST(MetricsLog, lines_are_appended) {
  const TempDir dir;
  const std::string path = dir.file("metrics.jsonl");
  MetricsLog(path).append(line(1));
  MetricsLog log(path);
  log.append(line(2));
  log.append(line(3));
  log.sync();
  EXPECT_EQ(content(path), line(1) + "\n" + line(2) + "\n" + line(3) + "\n");
}

TEST(MetricsLog, rewind_keeps_each_step_once) {
  const TempDir dir;
  const std::string path = dir.file("metrics.jsonl");
  const std::string kept = "{\"event\":\"start\"}\n" + line(1) + "\n" + line(2) + "\n{\"event\":\"eval\",\"step\":2}\nnot json\n";
  std::ofstream(path) << kept << line(3) << "\n{\"event\":\"note\"}\n" << line(4) << "\n{\"event\":\"tr";
  MetricsLog log(path);
  EXPECT_THAT(log.rewind(2), HasSubstr("has 1 line that no log has, the first of them line 5"));
  EXPECT_TRUE(log.evaluated());
  EXPECT_EQ(content(path), kept);
  log.append(line(3));
  EXPECT_EQ(content(path), kept + line(3) + "\n");
  log.rewind(100);
  EXPECT_EQ(content(path), kept + line(3) + "\n");
  log.rewind(-1);
  EXPECT_EQ(content(path), "{\"event\":\"start\"}\n");
}

TEST(MetricsLog, lines_that_it_did_not_write_cut_nothing_and_are_said) {
  const TempDir dir;
  const std::string path = dir.file("metrics.jsonl");
  std::string text = line(1) + "\n{\"step\":99999999999,\"x\":1}\n" + std::string(20 << 20, '\0') + "\n";
  text += std::string(1 << 20, '[') + "\n" + line(2) + "\n";
  std::ofstream(path) << text << line(3) << "\n";
  MetricsLog log(path);
  EXPECT_THAT(log.rewind(2), HasSubstr("has 3 lines that no log has, the first of them line 2"));
  EXPECT_FALSE(log.evaluated());
  EXPECT_EQ(File::open(path).size(), std::ssize(text));
}

TEST(MetricsLog, half_a_line_of_a_killed_process_is_cut_off) {
  const TempDir dir;
  const std::string path = dir.file("metrics.jsonl");
  std::ofstream(path) << line(1) << "\n{\"eve";
  MetricsLog log(path);
  log.append(line(2));
  EXPECT_EQ(content(path), line(1) + "\n" + line(2) + "\n");
}

TEST(MetricsLog, lines_longer_than_a_read_are_understood) {
  const TempDir dir;
  const std::string path = dir.file("metrics.jsonl");
  const std::string text(3 << 20, 'x');
  std::ofstream(path) << "{\"step\":1,\"text\":\"" << text << "\"}\n" << line(2) << "\n";
  MetricsLog log(path);
  log.rewind(1);
  EXPECT_EQ(File::open(path).size(), static_cast<int64_t>(text.size()) + 21);
}

TEST(MetricsLog, what_is_no_line_at_all_is_cut_off_without_reading_it) {
  const TempDir dir;
  const std::string path = dir.file("metrics.jsonl");
  std::ofstream(path) << line(1) << "\n";
  std::filesystem::resize_file(path, uintmax_t{1} << 40);  // sparse: would take days to read
  MetricsLog log(path);
  log.append(line(2));
  EXPECT_EQ(content(path), line(1) + "\n" + line(2) + "\n");
}

TEST(MetricsLog, a_line_that_does_not_fit_leaves_nothing_behind) {
  for (int n = 0;; ++n) {
    const TempDir dir;
    const std::string path = dir.file("metrics.jsonl");
    std::ofstream(path) << line(1) << "\n";
    FaultyFiles files({.at = n, .code = ENOSPC});
    try {
      MetricsLog log(path, files);
      try {
        log.append(line(2));
      } catch (const Error&) {
        log.append(line(2));  // room again
      }
      EXPECT_EQ(content(path), line(1) + "\n" + line(2) + "\n") << n;
    } catch (const Error& e) {  // could not even be opened
      EXPECT_EQ(content(path), line(1) + "\n") << e.what();
    }
    if (!files.struck()) break;
  }
}

TEST(MetricsLog, a_line_cut_by_a_full_device_is_removed_before_the_next) {
  const TempDir dir;
  const std::string path = dir.file("metrics.jsonl");
  MetricsLog log(path);
  log.append(line(1));
  std::ofstream(path, std::ios::app) << "{\"half";  // what a write leaves that ran into the end of the device
  log.append(line(2));
  EXPECT_EQ(content(path), line(1) + "\n" + line(2) + "\n");
}

}  // namespace
}  // namespace rowan
