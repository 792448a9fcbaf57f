#include "core/parallel.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <string>
#include <vector>

#include "core/error.h"

namespace rowan {
namespace {

TEST(Parallel, every_piece_runs_once_for_any_thread_count) {
  for (int count : {1, 2, 4, 7}) {
    Threads threads(count);
    for (int repeat = 0; repeat < 50; ++repeat) {
      std::vector<std::atomic<int>> hits(97);
      parallel_pieces(97, [&](int64_t i) { ++hits[static_cast<size_t>(i)]; });
      for (const auto& h : hits) EXPECT_EQ(h.load(), 1);
    }
  }
}

TEST(Parallel, ranges_cover_the_whole_with_a_short_last_one) {
  Threads threads(3);
  std::vector<int> hits(1001, 0);
  parallel_ranges(1001, 100, [&](int64_t begin, int64_t end) {
    EXPECT_LE(end - begin, 100);
    for (int64_t i = begin; i < end; ++i) ++hits[static_cast<size_t>(i)];
  });
  EXPECT_EQ(std::vector<int>(1001, 1), hits);
}

TEST(Parallel, an_exception_of_a_piece_reaches_the_caller_and_the_threads_go_on_working) {
  Threads threads(2);
  EXPECT_THROW(parallel_pieces(64, [](int64_t i) { ROWAN_CHECK(i != 13, "thirteen"); }), Error);
  std::atomic<int> sum{0};
  parallel_pieces(10, [&](int64_t i) { sum += static_cast<int>(i); });
  EXPECT_EQ(sum.load(), 45);
}

#ifndef ROWAN_SANITIZED  // which need address space of their own
TEST(Parallel, threads_that_the_system_does_not_give_are_an_error) {
  rlimit before{};
  getrlimit(RLIMIT_AS, &before);
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlimit tight{static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE) + (int64_t{64} << 20)), before.rlim_max};  // some ten stacks
  setrlimit(RLIMIT_AS, &tight);
  std::string said;
  try {
    const Threads threads(500);
  } catch (const Error& error) {
    said = error.what();
  }
  setrlimit(RLIMIT_AS, &before);
  EXPECT_NE(said.find(" of 500 threads: "), std::string::npos) << said;
  const Threads threads(2);  // and those that were there are gone
  EXPECT_EQ(current_threads(), 2);
}
#endif

TEST(Parallel, a_loop_inside_a_loop_runs_on_the_thread_that_meets_it) {
  Threads threads(2);
  std::atomic<int> sum{0};
  parallel_pieces(8, [&](int64_t) { parallel_pieces(8, [&](int64_t) { ++sum; }); });
  EXPECT_EQ(sum.load(), 64);
}

TEST(Parallel, denormals_are_flushed_on_every_thread_while_threads_exist) {
  volatile float tiny = 1e-38f;
  {
    Threads threads(2);
    std::atomic<int> nonzero{0};
    parallel_pieces(100, [&](int64_t) { nonzero += tiny * 1e-3f != 0.0f; });
    EXPECT_EQ(nonzero.load(), 0);
    std::atomic<int> flushing{0};
    parallel_pieces(100, [&](int64_t) { flushing += flushes_denormals(); });
    EXPECT_EQ(flushing.load(), 100);
    EXPECT_TRUE(flushes_denormals());
  }
  EXPECT_NE(tiny * 1e-3f, 0.0f);
  EXPECT_FALSE(flushes_denormals());
}

}  // namespace
}  // namespace rowan
