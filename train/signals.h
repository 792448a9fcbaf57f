// IgnoredSignals: signals that must not end a process which has nothing to do about them yet. SIGUSR1 before the first step: there
// is nothing to save. SIGPIPE: that nobody reads the progress any more is no reason to lose the run.
//
// SignalScope: what the signals of a training run ask for, polled by the loop.
//
// SIGINT, SIGTERM: finish the current step, save, stop (exit code 128 + signal). SIGUSR1: save and go on. A second SIGINT or
// SIGTERM stops the process at once, as if nothing had caught it. The handlers only set flags; the ones that stood before come
// back with the end of the scope. One scope at a time in a process: signals belong to processes.
#pragma once

#include <csignal>
#include <initializer_list>
#include <utility>
#include <vector>

namespace rowan {

class IgnoredSignals {
 public:
  explicit IgnoredSignals(std::initializer_list<int> signals);
  ~IgnoredSignals();
  IgnoredSignals(const IgnoredSignals&) = delete;
  IgnoredSignals& operator=(const IgnoredSignals&) = delete;

 private:
  std::vector<std::pair<int, struct sigaction>> before_;
};

class SignalScope {
 public:
  SignalScope();
  ~SignalScope();
  SignalScope(const SignalScope&) = delete;
  SignalScope& operator=(const SignalScope&) = delete;

  int stop_signal() const;   // 0, or the signal that asked to stop
  bool take_save_request();  // true once for every SIGUSR1 seen since the last call

 private:
  struct sigaction old_int_, old_term_, old_usr1_;
};

}  // namespace rowan
