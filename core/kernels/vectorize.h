// ROWAN_VECTORIZED: compiles a function for several instruction sets and picks the best one when the program is loaded.
//
//   ROWAN_VECTORIZED void scale(Real* x, int64_t n, Real s) { for (int64_t i = 0; i < n; ++i) x[i] *= s; }
//
// The loop is plain C++ and the compiler makes SSE2, AVX2 and AVX-512 versions of it. Floating-point contraction is off in the
// whole build, so all versions of an elementwise loop, and its vector body and scalar tail, give the same bits. A function that
// is marked must not be a template or a lambda; helpers it calls must be inlined to profit. Under sanitizers, whose runtime is
// not up yet when the choice is made, and on other compilers and processors there is one version: the plain one.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(ROWAN_SANITIZED)
#define ROWAN_VECTORIZED __attribute__((target_clones("default", "avx2", "arch=x86-64-v4")))
#else
#define ROWAN_VECTORIZED
#endif

// Before a loop: no iteration reads what another one writes, although pointers may be equal (an output that replaces its input).
// Without it the compiler tests for overlap and takes a scalar loop when it finds any.
// GCC only: Clang takes its own hint for an order, and warns of loops that it does not vectorize (calls of std::exp in double).
#if defined(__GNUC__) && !defined(__clang__)
#define ROWAN_INDEPENDENT _Pragma("GCC ivdep")
#else
#define ROWAN_INDEPENDENT
#endif

// Before a loop over the lanes of a reduction: the loop stays one and becomes one vector operation. GCC otherwise unrolls it first
// and then finds a way to vectorize the loop around it, which transposes blocks of lanes in registers.
#if defined(__GNUC__) && !defined(__clang__)
#define ROWAN_ONE_VECTOR _Pragma("GCC unroll 1")
#else
#define ROWAN_ONE_VECTOR
#endif

// For the small functions that such loops call.
#define ROWAN_INLINE [[gnu::always_inline]] inline
