// Run directories: nothing that was published is lost, whatever fails and whenever the process is killed.
#include "train/run_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "core/rng.h"
#include "tests/support/faulty_files.h"
#include "tests/support/temp_dir.h"
#include "tests/train/small_checkpoint.h"

namespace rowan {
namespace {

namespace fs = std::filesystem;
using test::FaultyFiles;
using test::small_image;
using test::TempDir;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Error error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& e) {
    return e;
  }
  return Error("no error");
}

void damage(const std::string& path) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekg(3000);
  const char byte = static_cast<char>(file.get());
  file.seekp(3000);
  file.put(static_cast<char>(byte ^ 1));
}

FaultyFiles no_faults() {
  return FaultyFiles({});
}  // spares the tests the wait for the device

TEST(RunDir, names_sort_as_numbers_do) {
  EXPECT_EQ(checkpoint_file_name(0), "step-0000000000.h5");
  EXPECT_EQ(checkpoint_file_name(1234), "step-0000001234.h5");
  EXPECT_EQ(checkpoint_file_name(12345678901), "step-12345678901.h5");
  const TempDir dir;
  fs::create_directory(dir.file("checkpoints"));
  for (const char* name :
       {"step-0000000010.h5", "step-12345678901.h5", "step-9999999999.h5", "step-0000000009.h5", "step-9.h5", "step-x.h5",
        "step--000000001.h5", "step-0000000011.h5.bak", ".tmp-1-0", "step-99999999999999999999.h5"}) {
    std::ofstream(dir.file(std::string("checkpoints/") + name));
  }
  EXPECT_THAT(checkpoint_steps(dir.path().string()), ElementsAre(9, 10, 9999999999, 12345678901));
}

// A name that leads nowhere is as good as damaged; a reader of a run that goes on finds what came after the file it looked for.
TEST(RunDir, a_checkpoint_that_is_gone_is_passed_over) {
  const TempDir dir;
  RunDir run = RunDir::create(dir.file("run"), false);
  run.save(small_image(3));
  fs::create_symlink(dir.file("nowhere"), run.checkpoint_path(9));
  const FoundCheckpoint found = find_checkpoint(run.path());
  EXPECT_EQ(found.checkpoint.integer("/train/step"), 3);
  ASSERT_EQ(found.skipped.size(), 1u);
  EXPECT_THAT(found.skipped[0].reason, HasSubstr("ENOENT"));
  fs::remove(run.checkpoint_path(9));

  class RunThatGoesOn final : public FileSystem {
   public:
    explicit RunThatGoesOn(std::function<void()> go_on) : go_on_(std::move(go_on)) {}
    int open(const std::string& path, int flags, mode_t mode) override {
      if (path.ends_with("step-0000000003.h5")) std::exchange(go_on_, [] {})();
      return FileSystem::open(path, flags, mode);
    }

   private:
    std::function<void()> go_on_;
  } files([&] {
    run.save(small_image(4));
    run.retain(1);
  });
  const FoundCheckpoint next = find_checkpoint(run.path(), false, files);
  EXPECT_EQ(next.checkpoint.integer("/train/step"), 4);
  EXPECT_TRUE(next.skipped.empty());
}

TEST(RunDir, what_was_just_saved_is_never_removed) {
  const TempDir dir;
  RunDir run = RunDir::create(dir.file("run"), false);
  for (const int64_t step : {3, 10, 20}) run.save(small_image(step));
  EXPECT_THAT(run.retain(1, {3}), IsEmpty());
  EXPECT_THAT(checkpoint_steps(run.path()), ElementsAre(3, 20));
}

TEST(RunDir, what_is_no_part_of_the_state_is_replaced_only_where_that_was_said) {
  const TempDir dir;
  RunDir run = RunDir::create(dir.file("run"), false);
  run.save(small_image(4, 1.5));
  run.save(small_image(4, 1.0));
  EXPECT_EQ(find_checkpoint(run.path()).checkpoint.number("/train/best_loss"), 1.5);
  run.replace_at(4);
  run.save(small_image(4, 1.0));
  EXPECT_EQ(find_checkpoint(run.path()).checkpoint.number("/train/best_loss"), 1.0);
}

TEST(RunDir, an_existing_run_is_never_overwritten_unasked) {
  const TempDir dir;
  const std::string path = dir.file("a run");
  {
    RunDir run = RunDir::create(path, false);
    std::ofstream(run.config_path()) << "# config";
    run.save(small_image(5));
    std::ofstream(run.file("notes.txt")) << "mine";
    std::ofstream(run.file("checkpoints/mine.txt")) << "mine";
  }
  const Error refused = error_of([&] { RunDir::create(path, false); });
  EXPECT_EQ(refused.kind(), ErrorKind::kUsage);
  EXPECT_THAT(refused.what(), HasSubstr("holds a run already"));
  EXPECT_THAT(refused.hint(), AllOf(HasSubstr("rowan resume"), HasSubstr("--overwrite")));
  EXPECT_EQ(find_checkpoint(path).checkpoint.integer("/train/step"), 5);
  const RunDir anew = RunDir::create(path, true);
  EXPECT_THAT(checkpoint_steps(path), IsEmpty());
  EXPECT_FALSE(fs::exists(anew.config_path()));
  EXPECT_TRUE(fs::exists(anew.file("notes.txt")));
  EXPECT_TRUE(fs::exists(anew.file("checkpoints/mine.txt")));
}

TEST(RunDir, a_directory_that_is_no_run_is_left_alone) {
  const TempDir dir;
  std::ofstream(dir.file("thesis.tex")) << "text";
  for (const bool overwrite : {false, true}) {
    EXPECT_THAT(error_of([&] { RunDir::create(dir.path().string(), overwrite); }).what(), HasSubstr("'thesis.tex'"));
  }
  EXPECT_THAT(list_directory(dir.path().string()), ElementsAre("thesis.tex"));
  EXPECT_THAT(error_of([&] { RunDir::open(dir.path().string()); }).what(), HasSubstr("not the directory of a run"));
  EXPECT_THAT(error_of([&] { RunDir::open(dir.file("none")); }).what(), HasSubstr("no such directory"));
}

TEST(RunDir, the_newest_checkpoint_that_verifies_is_found) {
  const TempDir dir;
  FaultyFiles files = no_faults();
  RunDir run = RunDir::create(dir.path().string(), false, files);
  std::ofstream(run.config_path()) << "";
  EXPECT_THAT(error_of([&] { find_checkpoint(run.path()); }).what(), HasSubstr("has no checkpoint yet"));
  for (const int64_t step : {9, 10, 100, 1000}) run.save(small_image(step));
  EXPECT_THAT(find_checkpoint(run.path()).skipped, IsEmpty());
  damage(run.checkpoint_path(1000));
  std::ofstream(run.checkpoint_path(100), std::ios::trunc) << "";
  const FoundCheckpoint found = find_checkpoint(run.path());
  EXPECT_EQ(found.checkpoint.integer("/train/step"), 10);
  ASSERT_EQ(found.skipped.size(), 2u);
  EXPECT_EQ(found.skipped[0].path, run.checkpoint_path(1000));
  EXPECT_THAT(found.skipped[0].reason, HasSubstr("damaged"));
  EXPECT_THAT(found.skipped[1].reason, HasSubstr("is empty"));
  EXPECT_THAT(error_of([&] { find_checkpoint(run.path(), true); }).what(), HasSubstr("damaged"));
  EXPECT_EQ(find_checkpoint(run.checkpoint_path(9)).checkpoint.integer("/train/step"), 9);
  fs::rename(run.checkpoint_path(9), run.checkpoint_path(2000));
  EXPECT_THAT(find_checkpoint(run.path()).skipped[0].reason, HasSubstr("holds step 9, not the one of its name"));
  damage(run.checkpoint_path(10));
  const Error none = error_of([&] { find_checkpoint(run.path()); });
  EXPECT_EQ(none.kind(), ErrorKind::kData);
  EXPECT_THAT(none.what(), HasSubstr("none of the 4 checkpoints"));
}

TEST(RunDir, a_step_that_stands_is_kept_and_a_damaged_one_replaced) {
  const TempDir dir;
  FaultyFiles files = no_faults();
  RunDir run = RunDir::create(dir.path().string(), false, files);
  run.save(small_image(3));
  EXPECT_NO_THROW(run.save(small_image(3)));
  test::SmallState other;
  other.step = 3;
  other.seen = {4};
  EXPECT_THAT(error_of([&] { run.save(other.image()); }).what(), HasSubstr("holds another state of step 3"));
  damage(run.checkpoint_path(3));
  run.save(other.image());
  EXPECT_EQ(find_checkpoint(run.path()).checkpoint.state_digest(), other.image().state_digest());
}

TEST(RunDir, retention_keeps_the_newest_good_ones_and_never_removes_the_only_good_one) {
  const RandomKey key{.seed = 11, .purpose = Purpose::kTest};
  for (uint64_t round = 0; round < 40; ++round) {
    const TempDir dir;
    FaultyFiles files = no_faults();
    std::vector<int64_t> steps, good;
    {
      RunDir writer = RunDir::create(dir.path().string(), false, files);
      for (int64_t step = 1; step <= 12; ++step) {
        if (random_below(key, round * 100 + static_cast<uint64_t>(step), 2) == 0) continue;
        writer.save(small_image(step));
        steps.push_back(step);
      }
      for (const int64_t step : steps) {
        const bool bad = random_below(key, round * 100 + 50 + static_cast<uint64_t>(step), 3) == 0;
        if (bad) damage(writer.checkpoint_path(step));
        if (!bad) good.push_back(step);
      }
    }
    const auto keep = static_cast<int64_t>(random_below(key, round * 100 + 99, 4));  // 0 is taken as 1
    RunDir run = RunDir::open(dir.path().string(), files);                           // one that has to look at each file itself
    EXPECT_THAT(run.retain(keep), IsEmpty());
    const auto wanted = std::min(good.size(), static_cast<size_t>(std::max<int64_t>(keep, 1)));
    const std::vector<int64_t> newest(good.end() - static_cast<std::ptrdiff_t>(wanted), good.end());
    const std::vector<int64_t> left = checkpoint_steps(run.path());
    for (const int64_t step : newest) EXPECT_THAT(left, testing::Contains(step));
    if (wanted == static_cast<size_t>(std::max<int64_t>(keep, 1))) {
      for (const int64_t step : left) EXPECT_GE(step, newest.front());
    }
    if (good.empty()) continue;
    EXPECT_EQ(find_checkpoint(run.path()).checkpoint.integer("/train/step"), good.back());
  }
}

TEST(RunDir, best_survives_retention_and_is_never_a_damaged_one) {
  const TempDir dir;
  FaultyFiles files = no_faults();
  RunDir run = RunDir::create(dir.path().string(), false, files);
  for (const int64_t step : {1, 2, 3}) run.save(small_image(step));
  run.set_best(1);
  run.retain(1);
  EXPECT_THAT(checkpoint_steps(run.path()), ElementsAre(3));
  EXPECT_EQ(Checkpoint::open(run.best_path()).integer("/train/step"), 1);
  run.set_best(3);
  EXPECT_EQ(Checkpoint::open(run.best_path()).integer("/train/step"), 3);
  std::ofstream(run.checkpoint_path(9)) << "no checkpoint";
  EXPECT_THAT(error_of([&] { run.set_best(9); }).what(), HasSubstr("best.h5 stays as it is"));
  EXPECT_EQ(Checkpoint::open(run.best_path()).integer("/train/step"), 3);
}

TEST(RunDir, half_written_files_of_dead_runs_are_removed_at_start) {
  const TempDir dir;
  fs::create_directory(dir.file("checkpoints"));
  for (const char* name : {".tmp-123-0", "checkpoints/.tmp-99-7", "checkpoints/keep.txt"}) std::ofstream(dir.file(name)) << "x";
  const RunDir run = RunDir::open(dir.path().string());
  EXPECT_THAT(list_directory(run.path()), ElementsAre("checkpoints", "run.lock"));
  EXPECT_THAT(list_directory(run.file("checkpoints")), ElementsAre("keep.txt"));
}

// What a training process does with its directory, from resume to the end of a save.
void one_save(const std::string& path, FileSystem& files) {
  RunDir run = RunDir::open(path, files);
  const int64_t step = find_checkpoint(path, false, files).checkpoint.integer("/train/step");
  run.save(small_image(step + 1));
  run.set_best(step + 1);
  run.retain(2);
}

void prepare(const std::string& path) {
  FaultyFiles files = no_faults();
  RunDir run = RunDir::create(path, false, files);
  for (const int64_t step : {1, 2, 3}) run.save(small_image(step));
  run.set_best(2);
}

void expect_nothing_lost(const std::string& path, const std::string& when) {
  const FoundCheckpoint found = find_checkpoint(path);
  EXPECT_GE(found.checkpoint.integer("/train/step"), 3) << when;
  EXPECT_THAT(found.skipped, IsEmpty()) << when;
  const int64_t best = Checkpoint::open(join_path(path, "best.h5")).integer("/train/step");
  EXPECT_THAT(best, testing::AnyOf(2, 3, 4)) << when;  // 3: when reading 3 failed at the resume, 2 was gone on with
  // And the next process can go on.
  FaultyFiles files = no_faults();
  one_save(path, files);
  EXPECT_GE(find_checkpoint(path).checkpoint.integer("/train/step"), 4) << when;
}

TEST(RunDir, nothing_is_lost_when_any_call_of_a_save_fails) {
  int points = 0;
  for (const int code : {EIO, ENOSPC, EINTR}) {
    for (const bool from_then_on : {false, true}) {
      if (code == EINTR && from_then_on) continue;  // signals without end are no fault of the device
      for (int n = 0;; ++n, ++points) {
        const TempDir dir;
        prepare(dir.path().string());
        FaultyFiles files({.at = n, .code = code, .from_then_on = from_then_on});
        try {
          one_save(dir.path().string(), files);
        } catch (const Error& e) {
          EXPECT_EQ(e.kind(), ErrorKind::kData) << e.what();
          EXPECT_NE(code, EINTR) << e.what();
        }
        if (!files.struck()) break;
        fs::remove(dir.file("run.lock"));  // where it could not be given back: its owner, this process, lives on
        expect_nothing_lost(dir.path().string(), files.last_struck());
      }
    }
  }
  RecordProperty("points", points);
  EXPECT_GT(points, 200);
}

TEST(RunDir, nothing_is_lost_when_killed_before_any_call_of_a_save) {
  int code = 99, points = 0;
  for (int n = 0; code == 99; ++n, ++points) {
    const TempDir dir;
    prepare(dir.path().string());
    const pid_t child = fork();
    if (child == 0) {
      FaultyFiles files({.at = n, .kill = true});
      one_save(dir.path().string(), files);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status));
    code = WEXITSTATUS(status);
    expect_nothing_lost(dir.path().string(), "killed before call " + std::to_string(n));  // takes the dead one's lock over
  }
  RecordProperty("points", points);
  EXPECT_EQ(code, 0);
  EXPECT_GT(points, 50);
}

}  // namespace
}  // namespace rowan
