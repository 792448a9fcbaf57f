#include "core/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "core/error.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rowan {
namespace {

void pause_briefly() {
#if defined(__x86_64__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

struct Job {
  int64_t pieces = 0;
  detail::PieceFunction function = nullptr;
  void* context = nullptr;
};

}  // namespace

// One job at a time. A worker waits for `generation_` to move, spinning first: between two kernels of a training step only
// microseconds pass, and a sleeping thread takes longer than that to wake.
class Threads::Workers {
 public:
  explicit Workers(int count) : spins_(count <= usable_cores() ? 20000 : 0), shares_(static_cast<size_t>(count)) {
    try {
      for (int i = 1; i < count; ++i) threads_.emplace_back([this, i] { work(static_cast<size_t>(i)); });
    } catch (const std::system_error& error) {
      const size_t started = threads_.size() + 1;
      stop();
      throw Error(
          join_text("[threads] the system gives this process ", started, " of ", count, " threads: ", error.code().message()),
          ErrorKind::kData, "ask for fewer with train.threads or --threads");
    }
  }

  ~Workers() { stop(); }

  int count() const { return static_cast<int>(threads_.size()) + 1; }

  void run(const Job& job) {
    job_ = job;
    const auto count = static_cast<int64_t>(shares_.size());
    for (int64_t i = 0; i < count; ++i) {
      Share& share = shares_[static_cast<size_t>(i)];
      share.next.store(job.pieces * i / count, std::memory_order_relaxed);
      share.end = job.pieces * (i + 1) / count;
    }
    active_.store(static_cast<int>(threads_.size()), std::memory_order_relaxed);
    generation_.fetch_add(1);
    generation_.notify_all();
    take_pieces(0);
    wait_for_workers();
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  void stop() {
    stop_.store(true);
    generation_.fetch_add(1);
    generation_.notify_all();
    for (std::thread& t : threads_) t.join();
  }

  // What a thread takes first; then it helps the others. Loops over the same data give a thread the same part of it each time, and
  // find it in that core's caches: where the cores do not share one, fetching what another core wrote last costs more than the
  // work.
  struct alignas(64) Share {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };

  void work(size_t self) {
    set_flush_to_zero();
    inside_loop = true;
    for (uint32_t seen = 0;;) {
      for (int i = 0; i < spins_ && generation_.load() == seen; ++i) pause_briefly();
      generation_.wait(seen);
      seen = generation_.load();
      if (stop_.load()) return;
      take_pieces(self);
      if (active_.fetch_sub(1) == 1) active_.notify_one();
    }
  }

  void take_pieces(size_t self) {
    for (size_t k = 0; k < shares_.size(); ++k) take_share(shares_[(self + k) % shares_.size()]);
  }

  void take_share(Share& share) {
    for (int64_t i; (i = share.next.fetch_add(1)) < share.end;) {
      try {
        job_.function(job_.context, i);
      } catch (...) {
        const std::lock_guard lock(error_mutex_);
        if (!error_) error_ = std::current_exception();
        for (Share& s : shares_) s.next.store(s.end);
      }
    }
  }

  void wait_for_workers() {
    for (int i = 0; i < spins_ && active_.load() != 0; ++i) pause_briefly();
    for (int left; (left = active_.load()) != 0;) active_.wait(left);
  }

  const int spins_;
  Job job_;
  std::atomic<uint32_t> generation_{0};
  std::vector<Share> shares_;
  std::atomic<int> active_{0};
  std::atomic<bool> stop_{false};
  std::mutex error_mutex_;
  std::exception_ptr error_;
  std::vector<std::thread> threads_;

 public:
  static thread_local Workers* current;
  static thread_local bool inside_loop;
};

thread_local Threads::Workers* Threads::Workers::current = nullptr;
thread_local bool Threads::Workers::inside_loop = false;

Threads::Threads(int count) : previous_(Workers::current) {
  ROWAN_CHECK(count >= 1 && count <= 1024, "[threads] ", count, " threads; expected 1 to 1024");
  workers_ = std::make_unique<Workers>(count);
  Workers::current = workers_.get();
  saved_float_mode_ = set_flush_to_zero();
}

Threads::~Threads() {
  restore_float_mode(saved_float_mode_);
  Workers::current = previous_;
}

int Threads::count() const {
  return workers_->count();
}

int current_threads() {
  return Threads::Workers::current ? Threads::Workers::current->count() : 1;
}

void detail::run_pieces(int64_t pieces, PieceFunction function, void* context) {
  Threads::Workers* workers = Threads::Workers::current;
  bool& inside = Threads::Workers::inside_loop;
  if (pieces <= 1 || inside || workers == nullptr || workers->count() == 1) {
    for (int64_t i = 0; i < pieces; ++i) function(context, i);
    return;
  }
  struct Inside {
    bool& flag;
    explicit Inside(bool& f) : flag(f) { flag = true; }
    ~Inside() { flag = false; }
  } guard(inside);
  workers->run({pieces, function, context});
}

#if defined(__x86_64__)
namespace {
constexpr unsigned kFlushBits = 0x8040u;  // of MXCSR: flush-to-zero and denormals-are-zero
}
#endif

unsigned set_flush_to_zero() {
#if defined(__x86_64__)
  const unsigned mode = _mm_getcsr();
  _mm_setcsr(mode | kFlushBits);
  return mode;
#else
  return 0;
#endif
}

bool flushes_denormals() {
#if defined(__x86_64__)
  return (_mm_getcsr() & kFlushBits) == kFlushBits;
#else
  return false;
#endif
}

void restore_float_mode([[maybe_unused]] unsigned mode) {
#if defined(__x86_64__)
  _mm_setcsr((_mm_getcsr() & ~kFlushBits) | (mode & kFlushBits));
#endif
}

}  // namespace rowan
