// Runs a program as a user would and keeps what it printed.
//
//   const CommandResult r = run_command({ROWAN_BINARY, "config", "explain"});
//   EXPECT_EQ(r.exit_code, 0) << r.err;
//
// No shell is involved: arguments arrive byte for byte. stdin is empty unless given. A program that runs longer than the limit is
// killed and reported as timed out, so that a hanging command fails a test instead of stopping the suite.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace rowan::test {

struct CommandResult {
  int exit_code = -1;  // 128 + n when signal n ended it, as a shell says it
  int signal = 0;      // the signal that ended it, 0 for none
  bool timed_out = false;
  std::string out;
  std::string err;
};

struct CommandOptions {
  std::string input = {};                                             // stdin
  std::string directory = {};                                         // to run in; "" is the test's own
  std::vector<std::pair<std::string, std::string>> environment = {};  // set or replaced
  std::string stdout_path = {};                                       // a file or device that takes stdout instead of `out`
  std::vector<int> closed = {};                                       // standard descriptors that the program starts without
  double limit_seconds = 120;
};

namespace detail {

class Pipe {
 public:
  Pipe() {
    if (pipe2(ends_, O_CLOEXEC) != 0) throw std::runtime_error("pipe2 failed");
  }
  ~Pipe() {
    close_read();
    close_write();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  int read_end() const { return ends_[0]; }
  int write_end() const { return ends_[1]; }
  void close_read() { close_end(0); }
  void close_write() { close_end(1); }

 private:
  void close_end(int i) {
    if (ends_[i] != -1) close(ends_[i]);
    ends_[i] = -1;
  }
  int ends_[2] = {-1, -1};
};

// In the child, after fork: only calls that are allowed there. Exit code 127 says that the program could not be started.
[[noreturn]] inline void start_program(char** argv, const CommandOptions& options, int in, int out, int err) {
  if (!options.stdout_path.empty()) out = open(options.stdout_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (dup2(in, 0) == -1 || dup2(out, 1) == -1 || dup2(err, 2) == -1) _exit(127);
  for (const int fd : options.closed) close(fd);
  if (!options.directory.empty() && chdir(options.directory.c_str()) != 0) _exit(127);
  signal(SIGPIPE, SIG_DFL);
  execvp(argv[0], argv);
  _exit(127);
}

// Feeds stdin and drains both outputs together, so that neither side waits for the other.
inline void exchange(Pipe& in, Pipe& out, Pipe& err, const CommandOptions& options, CommandResult& result, pid_t child) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(options.limit_seconds);
  size_t written = 0;
  if (options.input.empty()) in.close_write();
  while (out.read_end() != -1 || err.read_end() != -1) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
    if (left <= 0) {
      result.timed_out = true;
      kill(child, SIGKILL);
      return;
    }
    pollfd files[3] = {{out.read_end(), POLLIN, 0}, {err.read_end(), POLLIN, 0}, {in.write_end(), POLLOUT, 0}};
    if (poll(files, 3, static_cast<int>(left)) < 0 && errno != EINTR) throw std::runtime_error("poll failed");
    const auto drain = [](const pollfd& file, Pipe& pipe, std::string& text) {
      char buffer[4096];
      if ((file.revents & (POLLIN | POLLHUP | POLLERR)) == 0) return;
      const ssize_t n = read(pipe.read_end(), buffer, sizeof(buffer));
      if (n > 0) text.append(buffer, static_cast<size_t>(n));
      if (n == 0) pipe.close_read();
    };
    drain(files[0], out, result.out);
    drain(files[1], err, result.err);
    if (in.write_end() != -1 && files[2].revents != 0) {
      const ssize_t n = write(in.write_end(), options.input.data() + written, options.input.size() - written);
      if (n > 0) written += static_cast<size_t>(n);
      if (n < 0 || written == options.input.size()) in.close_write();
    }
  }
}

}  // namespace detail

inline CommandResult run_command(const std::vector<std::string>& arguments, const CommandOptions& options = {}) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  detail::Pipe in, out, err;
  fcntl(in.write_end(), F_SETFL, O_NONBLOCK);
  const auto previous = signal(SIGPIPE, SIG_IGN);  // a program that does not read its stdin must not end the test
  const pid_t child = fork();
  if (child == -1) throw std::runtime_error("fork failed");
  if (child == 0) {
    for (const auto& [name, value] : options.environment) setenv(name.c_str(), value.c_str(), 1);
    detail::start_program(argv.data(), options, in.read_end(), out.write_end(), err.write_end());
  }
  in.close_read();
  out.close_write();
  err.close_write();
  CommandResult result;
  detail::exchange(in, out, err, options, result, child);
  int status = 0;
  while (waitpid(child, &status, 0) == -1 && errno == EINTR) {
  }
  signal(SIGPIPE, previous);
  result.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + result.signal;
  return result;
}

}  // namespace rowan::test
