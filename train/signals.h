// SignalScope: what the signals of a training run ask for, polled by the loop.
//
// SIGINT, SIGTERM: finish the current step, save, stop (exit code 128 + signal). SIGUSR1: save and go on. A second SIGINT or
// SIGTERM stops the process at once, as if nothing had caught it. The handlers only set flags; the ones that stood before come
// back with the end of the scope. One scope at a time in a process: signals belong to processes.
#pragma once

#include <csignal>

namespace rowan {

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
