#include "tools/guarded.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>

#include "core/error.h"
#include "train/file.h"

namespace rowan::tools {
namespace {

// Not the file's fault: told apart by its type.
[[noreturn]] void fail_system(const std::string& what, int code = errno) {
  throw FileError(join_text("[guarded] ", what, ": ", std::strerror(code)), code, {});
}

void set_limit(int which, rlim_t value) {
  const rlimit limit = {value, value};
  setrlimit(static_cast<__rlimit_resource>(which), &limit);  // a limit that can't be set is one less, no reason to stop
}

void limit_resources(int64_t bytes) {
  const auto size = static_cast<rlim_t>(bytes);
  set_limit(RLIMIT_CORE, 0);
  set_limit(RLIMIT_CPU, 60 + size / (20 << 20));
#ifndef ROWAN_SANITIZED  // whose shadow memory takes terabytes of address space
  set_limit(RLIMIT_AS, 4 * size + (rlim_t{4} << 30));
#endif
}

// An Error as bytes: kind, length of the hint, hint, message.
void send(int fd, const Error& e) {
  std::string text(1, static_cast<char>('0' + static_cast<int>(e.kind())));
  text += e.hint();
  text += '\0';
  text += e.what();
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = write(fd, text.data() + done, text.size() - done);
    if (n <= 0) return;  // the parent then sees the exit code alone
    done += static_cast<size_t>(n);
  }
}

[[noreturn]] void run_child(const std::function<void()>& work, int64_t bytes, int report) {
  limit_resources(bytes);
  int code = 0;
  try {
    work();
    std::cout.flush();
    if (std::fflush(stdout) != 0 || !std::cout) fail_data("[output] cannot write to standard output: ", std::strerror(errno));
  } catch (const Error& e) {
    send(report, e);
    code = 1;
  } catch (const std::exception& e) {
    send(report, Error(std::string("[guarded] ") + e.what(), ErrorKind::kData));
    code = 1;
  }
  _exit(code);  // without the parent's handlers
}

std::string receive(int fd) {
  std::string text;
  char piece[4096];
  for (ssize_t n; (n = read(fd, piece, sizeof piece)) != 0;) {
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) break;
    text.append(piece, static_cast<size_t>(n));
  }
  return text;
}

}  // namespace

void run_guarded(const std::function<void()>& work, const std::string& path, int64_t bytes) {
  int ends[2];
  if (pipe(ends) != 0) fail_system("no pipe to a child process");
  std::cout.flush();
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == -1) {
    const int code = errno;
    close(ends[0]);
    close(ends[1]);
    fail_system("no child process", code);
  }
  if (child == 0) {
    close(ends[0]);
    run_child(work, bytes, ends[1]);
  }
  close(ends[1]);
  const std::string report = receive(ends[0]);
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) == -1 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  const size_t end = report.find('\0');
  if (end == std::string::npos) {
    fail_data("[hdf5] '", path, "' makes the HDF5 library crash",
              WIFSIGNALED(status) ? join_text(" (signal ", WTERMSIG(status), ")") : std::string(), ": it is damaged or malicious");
  }
  throw Error(report.substr(end + 1), static_cast<ErrorKind>(report[0] - '0'), report.substr(1, end - 1));
}

}  // namespace rowan::tools
