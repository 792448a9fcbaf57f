// The lock of a run: one writer, dead owners taken over, strangers respected.
#include "train/run_lock.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "tests/support/faulty_files.h"
#include "tests/support/temp_dir.h"

namespace rowan {
namespace {

using test::FaultyFiles;
using test::TempDir;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string refusal(const std::string& directory, FileSystem& files = system_files()) {
  try {
    const RunLock lock = RunLock::acquire(directory, files);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kData);
    return std::string(e.what()) + "\nhint: " + e.hint();
  }
  return "acquired";
}

// A process that has ended, and so has its lock's owner.
pid_t run_child(const std::function<void()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    work();
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  return child;
}

void leave_lock_of(const LockOwner& owner, const std::string& path) {
  std::ofstream(path) << "pid " << owner.pid << "\nhost " << owner.host << "\nboot " << owner.boot << "\nstart " << owner.start
                      << "\n";
}

TEST(RunLock, second_writer_is_told_who_the_first_is) {
  const TempDir dir;
  const RunLock lock = RunLock::acquire(dir.path().string());
  const LockOwner self = LockOwner::self();
  const std::string words = "in use by process " + std::to_string(getpid()) + " on host " + self.host;
  EXPECT_THAT(refusal(dir.path().string()), HasSubstr(words));
  run_child([&] { _exit(refusal(dir.path().string()).find(words) == std::string::npos ? 1 : 0); });
}

TEST(RunLock, is_given_back_at_the_end_of_its_scope_but_not_by_a_forked_child) {
  const TempDir dir;
  {
    auto lock = std::make_unique<RunLock>(RunLock::acquire(dir.path().string()));
    run_child([&] { lock.reset(); });
    EXPECT_THAT(list_directory(dir.path().string()), ElementsAre("run.lock"));
  }
  EXPECT_THAT(list_directory(dir.path().string()), IsEmpty());
  EXPECT_EQ(refusal(dir.path().string()), "acquired");
}

TEST(RunLock, dead_owner_is_taken_over) {
  const TempDir dir;
  run_child([&] {
    new RunLock(RunLock::acquire(dir.path().string()));  // never given back
    _exit(0);
  });
  EXPECT_THAT(list_directory(dir.path().string()), ElementsAre("run.lock"));
  const RunLock lock = RunLock::acquire(dir.path().string());
  EXPECT_THAT(list_directory(dir.path().string()), ElementsAre("run.lock"));
  EXPECT_THAT(refusal(dir.path().string()), HasSubstr(std::to_string(getpid())));
}

TEST(RunLock, owner_killed_but_not_yet_buried_is_dead) {
  const TempDir dir;
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    new RunLock(RunLock::acquire(dir.path().string()));
    if (write(ready[1], "x", 1) != 1) _exit(1);
    pause();
  }
  char byte;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_THAT(refusal(dir.path().string()), HasSubstr("in use by process " + std::to_string(child)));
  kill(child, SIGKILL);
  siginfo_t info;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);  // a zombie from now on
  EXPECT_EQ(refusal(dir.path().string()), "acquired");
  waitpid(child, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
}

TEST(RunLock, liveness_of_owners) {
  const LockOwner self = LockOwner::self();
  EXPECT_TRUE(self.alive());
  EXPECT_GT(self.start, 0);
  EXPECT_FALSE(self.boot.empty());
  LockOwner other = self;
  other.start += 1;  // the number went to another process
  EXPECT_FALSE(other.alive());
  other = self;
  other.boot = "00000000-0000-0000-0000-000000000000";  // before the last boot
  EXPECT_FALSE(other.alive());
  other = self;
  other.pid = run_child([] {});
  EXPECT_FALSE(other.alive());
  other.host += "-elsewhere";  // can't be told from here
  EXPECT_TRUE(other.alive());
}

TEST(RunLock, lock_of_another_host_is_respected) {
  const TempDir dir;
  LockOwner owner = LockOwner::self();
  owner.host = "far.example";
  owner.pid = 4711;
  leave_lock_of(owner, dir.file("run.lock"));
  EXPECT_THAT(refusal(dir.path().string()),
              AllOf(HasSubstr("in use by process 4711 on host far.example"), HasSubstr("remove '" + dir.file("run.lock"))));
}

TEST(RunLock, lock_held_by_flock_is_respected_when_its_owner_is_out_of_sight) {
  const TempDir dir;
  LockOwner owner = LockOwner::self();
  owner.pid = run_child([] {});  // as if in another container: no such process here
  leave_lock_of(owner, dir.file("run.lock"));
  const int fd = open(dir.file("run.lock").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(flock(fd, LOCK_EX), 0);
  EXPECT_THAT(refusal(dir.path().string()), HasSubstr("in use by process " + std::to_string(owner.pid)));
  close(fd);
  EXPECT_EQ(refusal(dir.path().string()), "acquired");
}

TEST(RunLock, dead_taker_of_a_dead_owner_is_taken_over) {
  const TempDir dir;
  LockOwner owner = LockOwner::self();
  owner.pid = run_child([] {});
  leave_lock_of(owner, dir.file("run.lock"));
  LockOwner taker = LockOwner::self();
  taker.pid = run_child([] {});
  leave_lock_of(taker, dir.file("run.lock.after-" + std::to_string(owner.pid) + "-" + std::to_string(owner.start)));
  const RunLock lock = RunLock::acquire(dir.path().string());
  EXPECT_THAT(list_directory(dir.path().string()), ElementsAre("run.lock"));
}

TEST(RunLock, that_became_anothers_is_lost_and_one_that_is_only_gone_is_made_again) {
  const TempDir dir;
  RunLock lock = RunLock::acquire(dir.path().string());
  lock.check();
  std::filesystem::remove(dir.file("run.lock"));
  lock.check();
  EXPECT_THAT(refusal(dir.path().string()), HasSubstr("is in use by process " + std::to_string(getpid())));
  LockOwner other = LockOwner::self();
  other.pid = getppid();
  std::filesystem::remove(dir.file("run.lock"));
  leave_lock_of(other, dir.file("run.lock"));
  EXPECT_THROW(lock.check(), LockLost);
  std::filesystem::remove_all(dir.path());
  EXPECT_THROW(lock.check(), LockLost);
}

TEST(RunLock, what_dead_takers_left_is_removed_and_what_living_ones_hold_is_not) {
  const TempDir dir;
  LockOwner dead = LockOwner::self(), living = LockOwner::self();
  dead.pid = run_child([] {});
  living.pid = getppid();
  living.start = 0;
  leave_lock_of(dead, dir.file("run.lock.after-5-5"));
  leave_lock_of(living, dir.file("run.lock.after-6-6"));
  std::ofstream(dir.file("run.lock.after-7-7")) << "nothing that can be read";
  RunLock lock = RunLock::acquire(dir.path().string());
  lock.remove_leftovers();
  EXPECT_THAT(list_directory(dir.path().string()), ElementsAre("run.lock", "run.lock.after-6-6", "run.lock.after-7-7"));
}

TEST(RunLock, lock_that_cannot_be_read_is_respected) {
  const TempDir dir;
  std::ofstream(dir.file("run.lock")) << "garbage";
  EXPECT_THAT(refusal(dir.path().string()), AllOf(HasSubstr("can't be read"), HasSubstr("remove that file")));
}

// No flock, no RENAME_NOREPLACE, no hard links: what the poorest file systems offer.
class PoorFiles final : public FileSystem {
 public:
  int lock(int) override { return refuse(ENOLCK); }
  int rename_new(const std::string&, const std::string&) override { return refuse(EINVAL); }
  int link(const std::string&, const std::string&) override { return refuse(EPERM); }
  int fsync(int) override { return 0; }

 private:
  static int refuse(int code) {
    errno = code;
    return -1;
  }
};

TEST(RunLock, works_without_flock_and_links) {
  const TempDir dir;
  PoorFiles files;
  LockOwner owner = LockOwner::self();
  owner.pid = run_child([] {});
  leave_lock_of(owner, dir.file("run.lock"));
  const RunLock lock = RunLock::acquire(dir.path().string(), files);
  EXPECT_THAT(refusal(dir.path().string(), files), HasSubstr("in use by process"));
}

TEST(RunLock, of_many_processes_that_start_at_once_exactly_one_gets_it) {
  for (const bool dead_owner_first : {false, true}) {
    for (const bool poor : {false, true}) {
      const TempDir dir;
      if (dead_owner_first) {
        LockOwner owner = LockOwner::self();
        owner.pid = run_child([] {});
        leave_lock_of(owner, dir.file("run.lock"));
      }
      int start[2], done[2];
      ASSERT_EQ(pipe(start), 0);
      ASSERT_EQ(pipe(done), 0);
      std::vector<pid_t> children;
      for (int i = 0; i < 12; ++i) {
        children.push_back(fork());
        if (children.back() != 0) continue;
        close(start[1]);
        close(done[1]);
        char byte;
        if (read(start[0], &byte, 1) != 0) _exit(9);  // returns when the parent closes its end
        PoorFiles poor_files;
        FaultyFiles quick_files({});
        try {
          const RunLock lock = RunLock::acquire(dir.path().string(), poor ? static_cast<FileSystem&>(poor_files) : quick_files);
          if (read(done[0], &byte, 1) != 0) _exit(9);  // holds it until all have tried
          _exit(1);
        } catch (const Error& e) {
          _exit(std::string(e.what()).find("in use by process") != std::string::npos ? 0 : 2);
        }
      }
      close(start[0]);
      close(done[0]);
      close(start[1]);
      int winners = 0, losers = 0;
      for (int i = 0; i < 11; ++i) {  // eleven end by themselves, the winner waits
        int status = 0;
        wait(&status);
        losers += WIFEXITED(status) && WEXITSTATUS(status) == 0;
      }
      close(done[1]);
      int status = 0;
      wait(&status);
      winners += WIFEXITED(status) && WEXITSTATUS(status) == 1;
      EXPECT_EQ(winners, 1) << dead_owner_first << poor;
      EXPECT_EQ(losers, 11) << dead_owner_first << poor;
    }
  }
}

}  // namespace
}  // namespace rowan
