// Files and publication: every system call fails in turn, in every way, and what stood before stands after.
#include "train/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>

#include "tests/support/faulty_files.h"
#include "tests/support/temp_dir.h"

namespace rowan {
namespace {

namespace fs = std::filesystem;
using test::Fault;
using test::FaultyFiles;
using test::TempDir;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<uint8_t> some_bytes(size_t n) {
  std::vector<uint8_t> bytes(n);
  std::iota(bytes.begin(), bytes.end(), uint8_t{7});
  return bytes;
}

std::string content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}
std::string text_of(const std::vector<uint8_t>& bytes) {
  return {bytes.begin(), bytes.end()};
}

void write(const std::string& path, const std::vector<uint8_t>& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

std::vector<std::string> names_in(const TempDir& dir) {
  return list_directory(dir.path().string());
}

size_t open_descriptors() {
  return static_cast<size_t>(std::distance(fs::directory_iterator("/proc/self/fd"), {}));
}

std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kData);
    return e.what();
  }
  return "no error";
}

// Publishes `b` next to `a` (and over `c` with kReplace), under a fault, and checks what must always hold.
// Returns whether it was published.
bool publish_under(const Fault& fault, IfExists if_exists, bool& struck, std::string* message = nullptr) {
  const TempDir dir;
  const std::vector<uint8_t> old = some_bytes(1000), fresh = some_bytes(5000);
  write(dir.file("a"), old);
  if (if_exists == IfExists::kReplace) write(dir.file("b"), old);
  const size_t descriptors = open_descriptors();
  FaultyFiles files(fault);
  bool published = true;
  try {
    publish_file(dir.file("b"), fresh, if_exists, files);
  } catch (const Error& e) {
    published = false;
    if (message != nullptr) *message = e.what();
    EXPECT_EQ(e.kind(), ErrorKind::kData) << e.what();
    EXPECT_THAT(e.what(), HasSubstr(dir.path().string()));
  }
  struck = files.struck();
  EXPECT_EQ(open_descriptors(), descriptors) << files.last_struck();
  EXPECT_EQ(content(dir.file("a")), text_of(old));
  const std::string now = fs::exists(dir.file("b")) ? content(dir.file("b")) : "";
  if (published) {
    EXPECT_EQ(now, text_of(fresh)) << files.last_struck();
  } else {
    EXPECT_TRUE(now == text_of(fresh) || now == (if_exists == IfExists::kReplace ? text_of(old) : ""));
  }
  if (!fault.from_then_on && files.last_struck() != "unlink") {
    for (const std::string& name : names_in(dir)) EXPECT_FALSE(name.starts_with(kTemporaryPrefix)) << files.last_struck();
  }
  return published;
}

constexpr int kCodes[] = {ENOSPC, EDQUOT, EIO, EROFS, EACCES, ESTALE, EMFILE, ENOMEM, EFBIG, EINVAL};

TEST(Publication, survives_every_call_failing_in_every_way) {
  int points = 0;
  for (const IfExists if_exists : {IfExists::kRefuse, IfExists::kReplace}) {
    for (const int code : kCodes) {
      for (const bool from_then_on : {false, true}) {
        bool struck = true;
        for (int n = 0; struck; ++n, ++points)
          publish_under({.at = n, .code = code, .from_then_on = from_then_on}, if_exists, struck);
      }
    }
  }
  RecordProperty("points", points);
  EXPECT_GT(points, 500);  // 2 ways x 10 reasons x 2 durations x more than a dozen calls
}

TEST(Publication, goes_on_after_interrupted_and_short_calls) {
  for (const bool half : {false, true}) {
    bool struck = true;
    for (int n = 0; struck; ++n) {
      std::string message;
      EXPECT_TRUE(publish_under({.at = n, .code = EINTR, .half = half}, IfExists::kReplace, struck, &message))
          << n << ' ' << message;
    }
  }
  bool struck = false;
  EXPECT_TRUE(publish_under({.at = 0, .from_then_on = true, .half = true}, IfExists::kRefuse, struck));
}

TEST(Publication, tries_a_new_file_after_one_input_output_error) {
  bool struck = true;
  for (int n = 0; struck; ++n) {
    std::string message;
    // Looking whether the name is free and flushing the folder have no second try.
    const bool published = publish_under({.at = n, .code = EIO}, IfExists::kRefuse, struck, &message);
    EXPECT_TRUE(published || message.find("look for") != std::string::npos || message.find("directory") != std::string::npos)
        << message;
  }
}

TEST(Publication, notices_a_device_that_lost_what_was_written) {
  int noticed = 0;
  bool struck = true;
  for (int n = 0; struck; ++n) {
    std::string message;
    if (!publish_under({.at = n, .from_then_on = true, .lie = true}, IfExists::kRefuse, struck, &message)) {
      ++noticed;
      EXPECT_THAT(message, testing::AnyOf(HasSubstr("read back"), HasSubstr("bytes after")));
    }
    if (n > 3) break;  // the first calls come before the write: all of them meet a lying device
  }
  EXPECT_GE(noticed, 2);
}

TEST(Publication, leaves_old_or_new_when_killed_before_any_call) {
  for (const IfExists if_exists : {IfExists::kRefuse, IfExists::kReplace}) {
    int code = 99;
    for (int n = 0; code == 99; ++n) {
      const TempDir dir;
      write(dir.file("a"), some_bytes(1000));
      if (if_exists == IfExists::kReplace) write(dir.file("b"), some_bytes(10));
      const pid_t child = fork();
      if (child == 0) {
        FaultyFiles files({.at = n, .kill = true});
        publish_file(dir.file("b"), some_bytes(5000), if_exists, files);
        _exit(0);
      }
      int status = 0;
      waitpid(child, &status, 0);
      ASSERT_TRUE(WIFEXITED(status));
      code = WEXITSTATUS(status);
      EXPECT_EQ(content(dir.file("a")), text_of(some_bytes(1000)));
      const std::string now = fs::exists(dir.file("b")) ? content(dir.file("b")) : "";
      const std::string before = if_exists == IfExists::kReplace ? text_of(some_bytes(10)) : "";
      EXPECT_TRUE(now == text_of(some_bytes(5000)) || (code != 0 && now == before)) << n;
    }
    EXPECT_EQ(code, 0);
  }
}

TEST(Publication, never_replaces_unasked) {
  const TempDir dir;
  publish_text(dir.file("a"), "old", IfExists::kRefuse);
  EXPECT_THAT(message_of([&] { publish_text(dir.file("a"), "new", IfExists::kRefuse); }), HasSubstr("EEXIST"));
  EXPECT_EQ(content(dir.file("a")), "old");
  EXPECT_THAT(names_in(dir), ElementsAre("a"));
}

// A file system without RENAME_NOREPLACE: a hard link takes its place.
class OldFiles final : public FileSystem {
 public:
  int rename_new(const std::string&, const std::string&) override {
    errno = EINVAL;
    return -1;
  }
  int reserve(int, int64_t) override {
    errno = EOPNOTSUPP;
    return -1;
  }
  int link(const std::string& a, const std::string& b) override {
    if (!links) errno = EPERM;
    return links ? FileSystem::link(a, b) : -1;
  }
  bool links = true;
};

TEST(Publication, works_where_the_file_system_can_do_less) {
  const TempDir dir;
  OldFiles files;
  publish_text(dir.file("a"), "text", IfExists::kRefuse, files);
  EXPECT_EQ(content(dir.file("a")), "text");
  EXPECT_THAT(message_of([&] { rename_without_replacing(dir.file("a"), dir.file("a"), files); }), HasSubstr("EEXIST"));
  EXPECT_THAT(names_in(dir), ElementsAre("a"));
}

TEST(Publication, link_is_replaced_in_one_step_and_copied_where_links_do_not_work) {
  for (const bool links : {true, false}) {
    const TempDir dir;
    OldFiles files;
    files.links = links;
    publish_text(dir.file("one"), "1", IfExists::kRefuse);
    publish_text(dir.file("two"), "2", IfExists::kRefuse);
    publish_link(dir.file("one"), dir.file("best"), files);
    publish_link(dir.file("one"), dir.file("best"), files);  // the same again
    EXPECT_EQ(content(dir.file("best")), "1");
    publish_link(dir.file("two"), dir.file("best"), files);
    EXPECT_EQ(content(dir.file("best")), "2");
    EXPECT_EQ(fs::hard_link_count(dir.file("two")), links ? 2u : 1u);
    EXPECT_THAT(names_in(dir), ElementsAre("best", "one", "two"));
  }
}

TEST(Publication, says_how_much_room_is_needed_and_free) {
  bool struck = false;
  std::string found;
  for (int n = 0; n < 6; ++n) {
    std::string message;
    publish_under({.at = n, .code = ENOSPC}, IfExists::kRefuse, struck, &message);
    if (message.find("reserve") != std::string::npos) found = message;
  }
  EXPECT_THAT(found, HasSubstr("No space left on device (ENOSPC); 5000 bytes needed, "));
  EXPECT_THAT(found, HasSubstr(" free in '"));
}

TEST(File, refuses_what_is_no_regular_file) {
  const TempDir dir;
  EXPECT_THAT(message_of([&] { File::open(dir.path().string()); }), HasSubstr("is a directory"));
  EXPECT_THAT(message_of([&] { File::open("/dev/zero"); }), HasSubstr("not a regular file"));
  ASSERT_EQ(mkfifo(dir.file("pipe").c_str(), 0600), 0);
  EXPECT_THAT(message_of([&] { File::open(dir.file("pipe")); }), HasSubstr("not a regular file"));
  EXPECT_THAT(message_of([&] { File::open(dir.file("none")); }), HasSubstr("ENOENT"));
}

TEST(File, reading_past_the_end_is_an_error) {
  const TempDir dir;
  publish_text(dir.file("a"), "12345", IfExists::kRefuse);
  char data[8];
  EXPECT_THAT(message_of([&] { File::open(dir.file("a")).read(2, data, 4); }), HasSubstr("ends at byte 5"));
  EXPECT_THAT(message_of([&] { read_text(dir.file("a"), 4); }), HasSubstr("has 5 bytes; at most 4 are read"));
  EXPECT_EQ(read_text(dir.file("a"), 5), "12345");
}

TEST(File, folders_of_paths) {
  EXPECT_EQ(parent_directory("a"), ".");
  EXPECT_EQ(parent_directory("a/b"), "a");
  EXPECT_EQ(parent_directory("a/b/"), "a");
  EXPECT_EQ(parent_directory("a//b"), "a");
  EXPECT_EQ(parent_directory("/a"), "/");
  EXPECT_EQ(parent_directory("/"), "/");
  EXPECT_EQ(parent_directory(""), ".");
  EXPECT_EQ(join_path("a", "b"), "a/b");
  EXPECT_EQ(join_path("/", "b"), "/b");
  EXPECT_EQ(join_path(".", "b"), "b");
}

TEST(File, makes_directories_with_parents) {
  const TempDir dir;
  make_directories(dir.file("x/y/z"));
  make_directories(dir.file("x/y/z"));
  EXPECT_TRUE(directory_exists(dir.file("x/y/z")));
  publish_text(dir.file("f"), "", IfExists::kRefuse);
  EXPECT_THAT(message_of([&] { make_directories(dir.file("f/g")); }), HasSubstr("cannot"));
}

}  // namespace
}  // namespace rowan
