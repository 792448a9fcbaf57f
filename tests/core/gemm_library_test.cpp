#include "core/kernels/gemm_library.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "core/error.h"
#include "tests/support/compare.h"
#include "tests/support/random.h"

namespace rowan {
namespace {

using test::expect_close;
using test::random_tensor;

// Operands that lie `offset` elements into their buffers.
struct Operands {
  GemmCall call;
  Tensor a, b, c;
  Operands(Op op_a, Op op_b, int64_t m, int64_t n, int64_t k, int64_t offset = 0)
      : a({m * k + offset}), b({n * k + offset}), c(Tensor::zeros({m * n + offset})) {
    const Tensor av = random_tensor({m * k}, 1), bv = random_tensor({n * k}, 2);
    std::copy_n(av.data(), m * k, a.data() + offset);
    std::copy_n(bv.data(), n * k, b.data() + offset);
    call = {op_a,
            op_b,
            m,
            n,
            k,
            1,
            a.data() + offset,
            op_a == Op::kNone ? k : m,
            b.data() + offset,
            op_b == Op::kNone ? n : k,
            0,
            c.data() + offset,
            n};
  }
  std::vector<Real> result() const { return {call.c, call.c + call.m * call.n}; }
};

std::vector<double> plain_product(const GemmCall& g) {
  std::vector<double> c;
  for (int64_t i = 0; i < g.m; ++i)
    for (int64_t j = 0; j < g.n; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < g.k; ++p)
        sum += static_cast<double>(g.op_a == Op::kNone ? g.a[i * g.lda + p] : g.a[p * g.lda + i]) *
               static_cast<double>(g.op_b == Op::kNone ? g.b[p * g.ldb + j] : g.b[j * g.ldb + p]);
      c.push_back(sum);
    }
  return c;
}

std::vector<GemmLibrary> libraries() {
  if (kRealIsDouble) return {GemmLibrary::kOpenBlas};
  return {GemmLibrary::kOpenBlas, GemmLibrary::kOneDnn};
}

// ThreadSanitizer does not see how the libraries' own threads wait for each other, and would report them.
#ifdef __SANITIZE_THREAD__
constexpr int kLibraryThreads = 1;
#else
constexpr int kLibraryThreads = 2;
#endif

constexpr Op kOps[] = {Op::kNone, Op::kTranspose};
const int64_t kSizes[][3] = {{1, 1, 1}, {7, 5, 3}, {1, 130, 70}, {33, 48, 65}, {101, 97, 110}, {16, 16, 300}};

TEST(GemmLibrary, each_agrees_with_plain_loops_alone_and_with_threads_of_its_own) {
  for (const auto& s : kSizes)
    for (Op op_a : kOps)
      for (Op op_b : kOps)
        for (GemmLibrary library : libraries()) {
          Operands x(op_a, op_b, s[0], s[1], s[2]);
          const std::vector<double> expected = plain_product(x.call);
          run_gemm(library, x.call);
          expect_close(x.c, expected, kRealIsDouble ? 1e-14 : 2e-6);
          x.c.fill(0);
          run_gemm_with_library_threads(library, x.call, kLibraryThreads);
          expect_close(x.c, expected, kRealIsDouble ? 1e-14 : 2e-6);
        }
}

TEST(GemmLibrary, a_result_does_not_depend_on_where_the_operands_lie) {
  for (const auto& s : kSizes)
    for (Op op_a : kOps)
      for (Op op_b : kOps)
        for (GemmLibrary library : libraries()) {
          const Operands aligned(op_a, op_b, s[0], s[1], s[2]);
          run_gemm(library, aligned.call);
          for (int64_t offset : {1, 3, 4, 9}) {
            const Operands moved(op_a, op_b, s[0], s[1], s[2], offset);
            run_gemm(library, moved.call);
            EXPECT_EQ(aligned.result(), moved.result()) << s[0] << "x" << s[1] << "x" << s[2] << " moved by " << offset;
          }
        }
}

TEST(GemmLibrary, calls_from_many_threads_at_once_give_what_one_gives) {
  for (GemmLibrary library : libraries()) {
    const Operands alone(Op::kNone, Op::kTranspose, 130, 150, 140);
    run_gemm(library, alone.call);
    std::vector<std::thread> threads;
    std::vector<int> equal(8, 0);
    for (int& same : equal)
      threads.emplace_back([&same, library, expected = alone.result()] {
        const Operands mine(Op::kNone, Op::kTranspose, 130, 150, 140);
        for (int repeat = 0; repeat < 20; ++repeat) {
          run_gemm(library, mine.call);
          same += mine.result() == expected;
        }
      });
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(equal, std::vector<int>(8, 20));
  }
}

TEST(GemmLibrary, the_choice_follows_from_the_shape_and_both_are_chosen_where_both_can) {
  const auto choice = [](Op op_b, int64_t m, int64_t n, int64_t k) {
    GemmCall call{};
    call.op_b = op_b, call.m = m, call.n = n, call.k = k, call.alpha = 1;
    return best_library(call);
  };
  [[maybe_unused]] const GemmLibrary large = kRealIsDouble ? GemmLibrary::kOpenBlas : GemmLibrary::kOneDnn;
  EXPECT_EQ(choice(Op::kNone, 4, 4, 4), GemmLibrary::kOpenBlas);
  EXPECT_EQ(choice(Op::kTranspose, 384, 384, 0), GemmLibrary::kOpenBlas);
#ifdef __x86_64__
  EXPECT_EQ(choice(Op::kNone, 384, 384, 768), large);
  EXPECT_EQ(choice(Op::kTranspose, 384, 384, 768), large);
#endif
}

TEST(GemmLibrary, onednn_multiplies_float_and_says_that_it_has_no_double) {
  const Operands x(Op::kNone, Op::kNone, 2, 2, 2);
  if (kRealIsDouble)
    EXPECT_THROW(run_gemm(GemmLibrary::kOneDnn, x.call), Error);
  else
    EXPECT_NO_THROW(run_gemm(GemmLibrary::kOneDnn, x.call));
}

}  // namespace
}  // namespace rowan
