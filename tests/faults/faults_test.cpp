// The real program under faults: whichever system call fails or is the last, a resume gives the digest of an undisturbed run.
//
// ROWAN_FAULT_STRIDE=1 covers every call (minutes); by default every 5th, at an offset of its own for each kind of fault.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "core/rng.h"
#include "tests/support/run_command.h"
#include "tests/support/temp_dir.h"
#include "train/run_dir.h"

namespace rowan {
namespace {

namespace fs = std::filesystem;
using test::CommandResult;
using test::run_command;
using test::TempDir;

// Saves after steps 2, 4 and 6 with retention and best.h5 at work; small enough to take a blink.
constexpr char kConfig[] = R"(
[model]
d_model = 8
n_layer = 1
n_head = 2
max_seq_len = 11
tied = false
dropout = 0.1
[data]
train = "builtin:sort"
seq_len = 11
batch_size = 4
[train]
steps = 6
eval_every = 3
eval_tokens = 88
log_every = 1
threads = 1
[optim]
rule = "adamw"
[[optim.group]]
params = "embed.*"
rule = "sparse_adam"
[checkpoint]
every = 2
keep_last = 2
keep_best = true
)";

class Faults : public testing::Test {
 protected:
  Faults() {
    std::ofstream(config_) << kConfig;
    EXPECT_EQ(train(dir_.file("undisturbed"), {}).exit_code, 0);
    digest_ = digest_of_run(dir_.file("undisturbed"));
    EXPECT_EQ(digest_.size(), 33u);
  }

  CommandResult train(const std::string& run, const test::CommandOptions& options, bool overwrite = false) {
    std::vector<std::string> command = {ROWAN_BINARY, "train", config_, "--out", run};
    if (overwrite) command.push_back("--overwrite");
    return run_command(command, options);
  }
  std::string digest_of_run(const std::string& run) { return run_command({ROWAN_BINARY, "inspect", "--digest", run}).out; }

  test::CommandOptions fault(const std::string& run, long at, const std::string& kind) {
    fs::remove(report_);
    return {.environment = {{"LD_PRELOAD", ROWAN_FAULTS},
                            {"ROWAN_FAULT_DIR", run},
                            {"ROWAN_FAULT_AT", std::to_string(at)},
                            {"ROWAN_FAULT_KIND", kind},
                            {"ROWAN_FAULT_REPORT", report_}}};
  }
  std::string reported(const std::string& key) {
    std::ifstream in(report_);
    std::string found, word, value;
    while (in >> word >> value) {
      if (word == key) found = value;
    }
    return found;
  }

  // After whatever happened: no checkpoint is damaged, and going on ends in the same state.
  void expect_same_end(const std::string& run, const std::string& when) {
    const std::vector<int64_t> steps = fs::exists(run) ? checkpoint_steps(run) : std::vector<int64_t>{};
    for (const int64_t step : steps) {
      EXPECT_TRUE(verify_checkpoint(run + "/checkpoints/" + checkpoint_file_name(step)).ok()) << when;
    }
    EXPECT_TRUE(!fs::exists(run + "/best.h5") || verify_checkpoint(run + "/best.h5").ok()) << when;
    const CommandResult again = steps.empty() ? train(run, {}, true) : run_command({ROWAN_BINARY, "resume", run});
    EXPECT_EQ(again.exit_code, 0) << when << '\n' << again.err;
    EXPECT_EQ(digest_of_run(run), digest_) << when;
    for (const auto& entry : fs::recursive_directory_iterator(run)) {
      EXPECT_FALSE(entry.path().filename().string().starts_with(kTemporaryPrefix)) << when << ": " << entry.path();
    }
    expect_each_step_once(run, when);
  }
  void expect_each_step_once(const std::string& run, const std::string& when) {
    std::ifstream in(run + "/metrics.jsonl");
    std::vector<int> seen(7);
    for (std::string line; std::getline(in, line);) {
      for (int step = 1; step <= 6; ++step) {
        const std::string text = "\"event\":\"train\",\"step\":" + std::to_string(step) + ",";
        if (line.find(text) != std::string::npos) ++seen[static_cast<size_t>(step)];
      }
    }
    for (int step = 1; step <= 6; ++step) EXPECT_LE(seen[static_cast<size_t>(step)], 1) << when << ", step " << step;
  }

  TempDir dir_;
  std::string config_ = dir_.file("tiny.toml"), report_ = dir_.file("report");
  std::string digest_;
};

long stride() {
  const char* text = std::getenv("ROWAN_FAULT_STRIDE");
  return text == nullptr ? 5 : std::max(1L, std::strtol(text, nullptr, 10));
}

TEST_F(Faults, every_call_of_a_run_may_fail_or_be_the_last) {
  const std::string counted = dir_.file("counted");
  ASSERT_EQ(train(counted, fault(counted, -1, "5")).exit_code, 0);
  EXPECT_EQ(digest_of_run(counted), digest_);
  const long calls = std::atol(reported("calls").c_str());
  ASSERT_GT(calls, 60);
  const std::string kinds[] = {"kill", "5", "28", "4", "short"};
  int points = 0;
  std::set<std::string> struck;
  for (size_t k = 0; k < std::size(kinds); ++k) {
    for (long n = static_cast<long>(k) % stride(); n < calls; n += stride(), ++points) {
      const std::string run = dir_.file("run");
      const CommandResult r = train(run, fault(run, n, kinds[k]));
      const std::string when = kinds[k] + " at call " + std::to_string(n) + " (" + reported("struck") + ")";
      struck.insert(reported("struck"));
      if (kinds[k] == "kill") {
        EXPECT_EQ(r.signal, SIGKILL) << when;
      } else {
        EXPECT_TRUE(r.exit_code == 0 || r.exit_code == 1) << when << ": " << r.exit_code << '\n' << r.err;
        EXPECT_EQ(r.err.find("rowan: error: ") != std::string::npos, r.exit_code == 1) << when << ": " << r.err;
      }
      const bool harmless = kinds[k] == "4" || kinds[k] == "short";
      EXPECT_TRUE(!harmless || r.exit_code == 0) << when << '\n' << r.err;
      expect_same_end(run, when);
      fs::remove_all(run);
    }
  }
  std::string names;
  for (const std::string& name : struck) names += " " + name;
  std::printf("%d faults over %ld calls (stride %ld):%s\n", points, calls, stride(), names.c_str());
}

// Whatever a run met on the way, its log has whole lines, one a step at most, and it goes on to the state of one that met nothing.
TEST_F(Faults, on_a_device_that_fills_up_and_empties_again_nothing_is_lost) {
  const std::string whole = dir_.file("whole");
  const std::vector<std::string> sets = {"--set", "train.steps=60", "--set", "train.eval_every=5"};
  std::vector<std::string> command = {ROWAN_BINARY, "train", config_, "--out", whole};
  command.insert(command.end(), sets.begin(), sets.end());
  ASSERT_EQ(run_command(command).exit_code, 0);
  const std::string wanted = digest_of_run(whole);
  const auto image = static_cast<long>(fs::file_size(whole + "/best.h5"));
  int full = 0, failed_ends = 0, warned = 0, runs = 0;
  for (const char* background : {"false", "true"}) {
    for (const long images : {1, 2, 4}) {  // room for no checkpoint, for one, for some
      for (const long stretch : {40, 90, 250}) {
        const std::string run = dir_.file("run"), when = join_text(images, " images, ", stretch, " calls, background ", background);
        test::CommandOptions options = fault(run, -1, "28");
        options.environment.emplace_back("ROWAN_FAULT_QUOTA", join_text(images * image + image / 2, "/", stretch));
        command[4] = run;
        command.resize(5);
        command.insert(command.end(), sets.begin(), sets.end());
        command.insert(command.end(), {"--set", std::string("checkpoint.background=") + background});
        const CommandResult r = run_command(command, options);
        EXPECT_TRUE(r.exit_code == 0 || r.exit_code == 1) << when << r.err;
        EXPECT_EQ(r.err.find("ENOSPC") != std::string::npos, r.exit_code == 1) << when << r.err;
        full += !reported("struck").empty();
        warned += r.out.find("training goes on") != std::string::npos;
        failed_ends += r.exit_code == 1;
        ++runs;
        const std::vector<int64_t> steps = fs::exists(run) ? checkpoint_steps(run) : std::vector<int64_t>{};
        for (const int64_t step : steps)
          EXPECT_TRUE(verify_checkpoint(run + "/checkpoints/" + checkpoint_file_name(step)).ok()) << when;
        EXPECT_TRUE(r.exit_code == 1 || (!steps.empty() && steps.back() == 60)) << when;
        command.push_back("--resume");
        const CommandResult again = run_command(command);
        EXPECT_EQ(again.exit_code, 0) << when << again.err;
        EXPECT_EQ(digest_of_run(run), wanted) << when;
        expect_each_step_once(run, when);
        fs::remove_all(run);
      }
    }
  }
  EXPECT_GT(full, runs / 2);
  EXPECT_GT(warned, 0);
  std::printf("%d runs, %d met a full device, %d said so and went on, %d ended with exit code 1\n", runs, full, warned,
              failed_ends);
}

// The same on a device that is really small, where the system allows a test to mount one.
TEST_F(Faults, on_a_small_tmpfs_that_fills_up_and_empties_again_nothing_is_lost) {
  const std::string device = dir_.file("device");
  fs::create_directory(device);
  if (run_command({"mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", device}).exit_code != 0)
    GTEST_SKIP() << "mounting is not allowed here; the shim's quota above takes its place";
  const std::string run = device + "/run", filler = device + "/filler";
  std::vector<std::string> command = {ROWAN_BINARY, "train", config_, "--out", run};
  for (const char* set : {"train.steps=600", "train.eval_every=0", "train.log_every=100"})
    command.insert(command.end(), {"--set", set});
  std::atomic<bool> done = false;
  std::thread other([&] {  // somebody else on the device
    while (!done) {
      std::ofstream(filler) << std::string(1 << 20, 'x');
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      fs::remove(filler);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
  const CommandResult r = run_command(command);
  done = true;
  other.join();
  EXPECT_TRUE(r.exit_code == 0 || r.exit_code == 1) << r.err;
  EXPECT_NE((r.out + r.err).find("ENOSPC"), std::string::npos) << r.out << r.err;
  const std::vector<int64_t> steps = fs::exists(run) ? checkpoint_steps(run) : std::vector<int64_t>{};
  for (const int64_t step : steps) EXPECT_TRUE(verify_checkpoint(run + "/checkpoints/" + checkpoint_file_name(step)).ok()) << step;
  command.push_back("--resume");
  EXPECT_EQ(run_command(command).exit_code, 0);
  command[4] = dir_.file("whole");
  EXPECT_EQ(run_command(command).exit_code, 0);
  EXPECT_EQ(digest_of_run(run), digest_of_run(dir_.file("whole")));
  EXPECT_EQ(digest_of_run(run).size(), 33u);
  run_command({"umount", device});
}

// Starts the command, kills it after a while, and says whether it was still alive then.
bool run_and_kill(std::vector<std::string> words, std::chrono::microseconds after) {
  const pid_t child = fork();
  if (child == 0) {
    if (std::freopen("/dev/null", "w", stdout) == nullptr || std::freopen("/dev/null", "w", stderr) == nullptr) _exit(126);
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    execv(argv[0], argv.data());
    _exit(127);
  }
  std::this_thread::sleep_for(after);
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status);
}

TEST_F(Faults, killed_at_random_moments_nothing_published_is_lost) {
  const char* text = std::getenv("ROWAN_FAULT_KILLS");
  const int wanted_kills = text == nullptr ? 15 : std::atoi(text);
  // Many of the same tiny steps, so that kills meet the program at work.
  const std::string run = dir_.file("killed");
  std::vector<std::string> command = {ROWAN_BINARY, "train", config_, "--out", dir_.file("whole")};
  for (const char* value : {"train.steps=1000", "train.eval_every=0", "train.log_every=50"}) {
    command.push_back("--set");
    command.push_back(value);
  }
  ASSERT_EQ(run_command(command).exit_code, 0);
  const std::string wanted = digest_of_run(dir_.file("whole"));
  command[4] = run;
  int64_t published = 0;
  int kills = 0, whole_runs = 0, beyond_first_checkpoint = 0;
  const RandomKey key{.seed = 5, .purpose = Purpose::kTest};
  for (uint64_t i = 0; kills < wanted_kills; ++i) {
    const std::chrono::microseconds moment(random_below(key, i, 300000));
    const bool alive = run_and_kill(published > 0 ? std::vector<std::string>{ROWAN_BINARY, "resume", run} : command, moment);
    const std::vector<int64_t> steps = fs::exists(run) ? checkpoint_steps(run) : std::vector<int64_t>{};
    for (const int64_t step : steps) EXPECT_TRUE(verify_checkpoint(run + "/checkpoints/" + checkpoint_file_name(step)).ok());
    kills += alive;
    beyond_first_checkpoint += alive && !steps.empty();
    EXPECT_GE(steps.empty() ? 0 : steps.back(), published);
    published = steps.empty() ? 0 : steps.back();
    if (published == 0) fs::remove_all(run);  // died before its first checkpoint
    if (published == 1000) {
      EXPECT_EQ(digest_of_run(run), wanted);
      ++whole_runs;
      published = 0;
      fs::remove_all(run);
    }
  }
  const CommandResult last = run_command(published == 0 ? command : std::vector<std::string>{ROWAN_BINARY, "resume", run});
  EXPECT_EQ(last.exit_code, 0) << last.err;
  EXPECT_EQ(digest_of_run(run), wanted);
  std::printf("%d kills, %d of them after a checkpoint; %d runs ended between them, one after\n", kills, beyond_first_checkpoint,
              whole_runs);
}

}  // namespace
}  // namespace rowan
