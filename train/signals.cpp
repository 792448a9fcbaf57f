#include "train/signals.h"

#include <atomic>

#include "core/error.h"

namespace rowan {
namespace {

// A handler can reach nothing but static storage; lock-free atomics are safe in it.
std::atomic<int> stop_requested{0};
std::atomic<int> save_requested{0};
std::atomic<bool> scope_exists{false};

extern "C" void ask_to_stop(int signal) {
  if (stop_requested.exchange(signal) == 0) return;
  std::signal(signal, SIG_DFL);  // the second one: at once
  std::raise(signal);
}

extern "C" void ask_to_save(int) {
  save_requested.store(1);
}

struct sigaction replace_handler(int signal, void (*handler)(int)) {
  struct sigaction action = {}, old = {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(signal, &action, &old);
  return old;
}

}  // namespace

IgnoredSignals::IgnoredSignals(std::initializer_list<int> signals) {
  for (const int signal : signals) before_.emplace_back(signal, replace_handler(signal, SIG_IGN));
}

IgnoredSignals::~IgnoredSignals() {
  for (const auto& [signal, before] : before_) sigaction(signal, &before, nullptr);
}

SignalScope::SignalScope() {
  ROWAN_CHECK(!scope_exists.exchange(true), "[signals] this process already has a training run that listens to signals");
  stop_requested.store(0);
  save_requested.store(0);
  old_int_ = replace_handler(SIGINT, ask_to_stop);
  old_term_ = replace_handler(SIGTERM, ask_to_stop);
  old_usr1_ = replace_handler(SIGUSR1, ask_to_save);
}

SignalScope::~SignalScope() {
  sigaction(SIGINT, &old_int_, nullptr);
  sigaction(SIGTERM, &old_term_, nullptr);
  sigaction(SIGUSR1, &old_usr1_, nullptr);
  scope_exists.store(false);
}

int SignalScope::stop_signal() const {
  return stop_requested.load();
}
bool SignalScope::take_save_request() {
  return save_requested.exchange(0) != 0;
}

}  // namespace rowan
