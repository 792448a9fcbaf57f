// Threads and parallel loops whose results do not depend on the number of threads.
//
// Work is cut into pieces as a function of sizes only. A piece runs on one thread from start to end, writes what no other
// piece writes, and any reduction over pieces adds them in a fixed order afterwards. Which thread takes which piece is then
// without effect on a single bit.
//
//   Threads threads(2);                       // workers exist, and are used by this thread, until the end of the scope
//   parallel_ranges(n, 4096, [&](int64_t begin, int64_t end) { ... });
//
// Without a Threads object, loops run on the calling thread. A loop inside a loop runs on the thread that meets it. The first
// exception of a piece reaches the caller after all running pieces have ended.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace rowan {

class Threads {
 public:
  explicit Threads(int count);  // count >= 1, the calling thread included; sets flush-to-zero on all of them
  ~Threads();
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;
  int count() const;

  class Workers;

 private:
  std::unique_ptr<Workers> workers_;
  Workers* previous_;
  unsigned saved_float_mode_;
};

int current_threads();  // of the calling thread's Threads; 1 without one
int usable_cores();     // physical cores that this process may run on (affinity and cgroup quota), at least 1

// Denormals are flushed to zero, in results and operands, on every thread of a Threads object: a momentum that decays towards
// zero would otherwise spend its time in the processor's slow path. Returns the mode before, for restore_float_mode().
unsigned set_flush_to_zero();
void restore_float_mode(unsigned mode);
bool flushes_denormals();  // on the calling thread; within a Threads object it is the same on all of its threads

namespace detail {
using PieceFunction = void (*)(void* context, int64_t piece);
void run_pieces(int64_t pieces, PieceFunction function, void* context);
}  // namespace detail

// Calls body(piece) for every piece in [0, pieces).
template <class Body>
void parallel_pieces(int64_t pieces, Body&& body) {
  using Plain = std::remove_reference_t<Body>;
  detail::run_pieces(
      pieces, [](void* context, int64_t piece) { (*static_cast<Plain*>(context))(piece); },
      const_cast<void*>(static_cast<const void*>(&body)));
}

// Calls body(begin, end) over [0, n) in runs of `grain`. grain must not depend on the number of threads.
template <class Body>
void parallel_ranges(int64_t n, int64_t grain, Body&& body) {
  parallel_pieces((n + grain - 1) / grain, [&](int64_t piece) {
    const int64_t begin = piece * grain;
    body(begin, begin + grain < n ? begin + grain : n);
  });
}

}  // namespace rowan
