// A program that runs while the test goes on: to send it signals, or to look at what it writes.
//
//   StartedCommand run({ROWAN_BINARY, "train", config}, dir.file("out"), dir.file("err"));
//   ASSERT_TRUE(run.wait_until([&] { return lines_of(metrics) > 5; }));
//   run.send(SIGTERM);
//   EXPECT_EQ(run.wait().exit_code, 143);
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <iterator>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/run_command.h"

namespace rowan::test {

inline std::string read_all(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class StartedCommand {
 public:
  // stdout and stderr go to these files.
  StartedCommand(const std::vector<std::string>& arguments, const std::string& out, const std::string& err) : out_(out), err_(err) {
    std::vector<char*> argv;
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    child_ = fork();
    if (child_ == -1) throw std::runtime_error("fork failed");
    if (child_ != 0) return;
    const int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    const int to_out = open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    const int to_err = open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (dup2(in, 0) == -1 || dup2(to_out, 1) == -1 || dup2(to_err, 2) == -1) _exit(127);
    execvp(argv[0], argv.data());
    _exit(127);
  }
  ~StartedCommand() {
    if (child_ == -1) return;
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  StartedCommand(const StartedCommand&) = delete;
  StartedCommand& operator=(const StartedCommand&) = delete;

  pid_t pid() const { return child_; }
  void send(int signal) const { kill(child_, signal); }

  // Polls; false when `limit_seconds` have passed.
  static bool wait_until(const std::function<bool()>& condition, double limit_seconds = 60) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(limit_seconds);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return true;
  }

  // Until it has ended; killed after the limit and then reported as timed out.
  CommandResult wait(double limit_seconds = 120) {
    CommandResult result;
    int status = 0;
    const bool ended = wait_until([&] { return waitpid(child_, &status, WNOHANG) == child_; }, limit_seconds);
    if (!ended) {
      result.timed_out = true;
      kill(child_, SIGKILL);
      waitpid(child_, &status, 0);
    }
    child_ = -1;
    result.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + result.signal;
    result.out = read_all(out_);
    result.err = read_all(err_);
    return result;
  }

 private:
  std::string out_, err_;
  pid_t child_ = -1;
};

}  // namespace rowan::test
