#include "core/kernels/gemm_library.h"

#include <cblas.h>
#include <dnnl.h>

#include <algorithm>
#include <limits>
#include <string>

#include "core/error.h"
#include "core/kernels/openmp_threads.h"

namespace rowan {
namespace {

// oneDNN knows no double, and has nothing but a plain loop on other processors.
#ifdef __x86_64__
constexpr bool kOneDnnHasKernels = !kRealIsDouble;
#else
constexpr bool kOneDnnHasKernels = false;
#endif

int blas_int(int64_t value) {
  ROWAN_CHECK(value >= 0 && value <= std::numeric_limits<int>::max(), "[gemm] a dimension of ", value,
              " is too large for the BLAS");
  return static_cast<int>(value);
}

CBLAS_TRANSPOSE blas_op(Op op) {
  return op == Op::kNone ? CblasNoTrans : CblasTrans;
}

// The library must not start threads of its own under ours. Its setting is one for the process.
void hold_openblas_to_one_thread() {
  static const bool once = (openblas_set_num_threads(1), true);
  static_cast<void>(once);
}

void call_openblas(const GemmCall& g) {
#ifdef ROWAN_REAL_DOUBLE
  const auto gemm_function = cblas_dgemm;
#else
  const auto gemm_function = cblas_sgemm;
#endif
  const auto distance = [](int64_t ld) { return blas_int(std::max<int64_t>(1, ld)); };
  gemm_function(CblasRowMajor, blas_op(g.op_a), blas_op(g.op_b), blas_int(g.m), blas_int(g.n), blas_int(g.k), g.alpha, g.a,
                distance(g.lda), g.b, distance(g.ldb), g.beta, g.c, distance(g.ldc));
}

void call_onednn(const GemmCall& g, int threads) {
#ifdef ROWAN_REAL_DOUBLE
  static_cast<void>(g), static_cast<void>(threads);
  fail("[gemm] oneDNN has no product in double precision");
#else
  const OpenMpThreads held(threads);
  const auto letter = [](Op op) { return op == Op::kNone ? 'N' : 'T'; };
  const dnnl_status_t status =
      dnnl_sgemm(letter(g.op_a), letter(g.op_b), g.m, g.n, g.k, g.alpha, g.a, g.lda, g.b, g.ldb, g.beta, g.c, g.ldc);
  ROWAN_CHECK(status == dnnl_success, "[gemm] oneDNN refused a product of ", g.m, " x ", g.n, " x ", g.k, ": status ",
              static_cast<int>(status));
#endif
}

// OpenBLAS has its small-matrix kernels on these targets only.
bool openblas_has_small_kernels() {
  static const bool has = [] {
    const std::string core = openblas_get_corename();
    return core == "SkylakeX" || core == "Cooperlake" || core == "SapphireRapids";
  }();
  return has;
}

}  // namespace

GemmLibrary best_library(const GemmCall& g) {
  if (!kOneDnnHasKernels) return GemmLibrary::kOpenBlas;
  if (g.k == 0 || g.alpha == 0) return GemmLibrary::kOpenBlas;  // scales C, where oneDNN returns at once
  const double multiplications = static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k);
  if (!openblas_has_small_kernels()) return multiplications < 4096 ? GemmLibrary::kOpenBlas : GemmLibrary::kOneDnn;
  bool small = multiplications <= 1e6;
  if (g.op_a == Op::kNone && g.op_b == Op::kTranspose) {
    // OpenBLAS' small kernels of this kind end at about 1024 elements of C. oneDNN's kernel works on 48 columns at a time: it
    // loses when most of the last ones are empty and there are few others, and needs rows to make up for packing B.
    small = small && g.m * g.n <= 1024;
    if (g.n < 104) small = small || g.m < 128 || (g.n - 1) % 48 < 31;
  }
  return small || g.n <= 16 ? GemmLibrary::kOpenBlas : GemmLibrary::kOneDnn;
}

void run_gemm(GemmLibrary library, const GemmCall& call) {
  if (library == GemmLibrary::kOneDnn) return call_onednn(call, 1);
  hold_openblas_to_one_thread();
  call_openblas(call);
}

void run_gemm_with_library_threads(GemmLibrary library, const GemmCall& call, int threads) {
  if (library == GemmLibrary::kOneDnn) return call_onednn(call, threads);
  hold_openblas_to_one_thread();  // first, so that the setting below is not undone later
  openblas_set_num_threads(threads);
  call_openblas(call);
  openblas_set_num_threads(1);
}

}  // namespace rowan
