#include "core/kernels/gemm_bf16.h"

#include <dnnl.h>

#include <bit>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "core/error.h"
#include "core/kernels/openmp_threads.h"
#include "core/kernels/vectorize.h"

namespace rowan {

#ifdef ROWAN_REAL_DOUBLE

bool bf16_available() {
  return false;
}
bool bf16_serves(const GemmCall&) {
  return false;
}
void gemm_bf16(const GemmCall&) {
  fail("[gemm] a build in double precision has no bfloat16 products");
}

#else

namespace {

void check(dnnl_status_t status, const char* what) {
  ROWAN_CHECK(status == dnnl_success, "[gemm] oneDNN could not ", what, ": status ", static_cast<int>(status));
}

// To nearest, ties to even; a NaN stays one.
ROWAN_VECTORIZED void round_to_bf16(const float* x, uint16_t* y, int64_t n) {
  ROWAN_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(x[i]);
    const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    const uint32_t quiet = (bits >> 16) | 0x40u;
    y[i] = static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
  }
}

// oneDNN's C handles, destroyed by their own functions.
template <auto kDestroy, class T>
struct Destroy {
  void operator()(T* p) const { kDestroy(p); }
};
using Engine = std::unique_ptr<dnnl_engine, Destroy<dnnl_engine_destroy, dnnl_engine> >;
using Stream = std::unique_ptr<dnnl_stream, Destroy<dnnl_stream_destroy, dnnl_stream> >;
using Primitive = std::unique_ptr<dnnl_primitive, Destroy<dnnl_primitive_destroy, dnnl_primitive> >;
using Description = std::unique_ptr<dnnl_primitive_desc, Destroy<dnnl_primitive_desc_destroy, dnnl_primitive_desc> >;
using Attributes = std::unique_ptr<dnnl_primitive_attr, Destroy<dnnl_primitive_attr_destroy, dnnl_primitive_attr> >;
using PostOps = std::unique_ptr<dnnl_post_ops, Destroy<dnnl_post_ops_destroy, dnnl_post_ops> >;
using Memory = std::unique_ptr<dnnl_memory, Destroy<dnnl_memory_destroy, dnnl_memory> >;

dnnl_engine* engine() {
  static const Engine one = [] {
    dnnl_engine_t made = nullptr;
    check(dnnl_engine_create(&made, dnnl_cpu, 0), "start its CPU engine");
    return Engine(made);
  }();
  return one.get();
}

dnnl_stream* stream() {
  thread_local const Stream one = [] {
    dnnl_stream_t made = nullptr;
    check(dnnl_stream_create(&made, engine(), dnnl_stream_default_flags), "make a stream");
    return Stream(made);
  }();
  return one.get();
}

dnnl_memory_desc_t matrix(int64_t rows, int64_t columns, dnnl_data_type_t type, bool transposed, int64_t ld) {
  const dnnl_dims_t size = {rows, columns}, strides = {transposed ? 1 : ld, transposed ? ld : 1};
  dnnl_memory_desc_t made;
  check(dnnl_memory_desc_init_by_strides(&made, 2, size, type, strides), "describe a matrix");
  return made;
}

// A product of one shape: the operands lie packed, C as it is.
struct Product {
  dnnl_memory_desc_t a, b, c, scratch;
  Primitive primitive;
};

Attributes product_attributes(bool adds) {
  dnnl_primitive_attr_t attributes = nullptr;
  check(dnnl_primitive_attr_create(&attributes), "set up a product");
  Attributes owned(attributes);
  // Ours, so that one product may run on several threads at a time.
  check(dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user), "set up a product's memory");
  if (!adds) return owned;
  dnnl_post_ops_t sum = nullptr;
  check(dnnl_post_ops_create(&sum), "set up a sum");
  const PostOps owned_sum(sum);
  check(dnnl_post_ops_append_sum(sum, 1), "set up a sum");
  check(dnnl_primitive_attr_set_post_ops(attributes, sum), "set up a sum");
  return owned;
}

Product make_product(const GemmCall& g) {
  const bool a_turned = g.op_a == Op::kTranspose, b_turned = g.op_b == Op::kTranspose;
  Product p{matrix(g.m, g.k, dnnl_bf16, a_turned, a_turned ? g.m : g.k),
            matrix(g.k, g.n, dnnl_bf16, b_turned, b_turned ? g.k : g.n),
            matrix(g.m, g.n, dnnl_f32, false, g.ldc),
            {},
            {}};
  dnnl_matmul_desc_t description;
  check(dnnl_matmul_desc_init(&description, &p.a, &p.b, nullptr, &p.c), "describe a product");
  const Attributes attributes = product_attributes(g.beta != 0);
  dnnl_primitive_desc_t found = nullptr;
  check(dnnl_primitive_desc_create(&found, &description, attributes.get(), engine(), nullptr), "find a bfloat16 product");
  const Description owned(found);
  p.scratch = *dnnl_primitive_desc_query_md(found, dnnl_query_scratchpad_md, 0);
  dnnl_primitive_t made = nullptr;
  check(dnnl_primitive_create(&made, found), "make a bfloat16 product");
  p.primitive.reset(made);
  return p;
}

// Generating a kernel takes milliseconds and a training step needs few shapes: they are kept.
const Product& product_for(const GemmCall& g) {
  using Key = std::tuple<Op, Op, int64_t, int64_t, int64_t, int64_t, bool>;
  static std::mutex mutex;
  static std::map<Key, Product> known;
  const std::lock_guard lock(mutex);
  const Key key{g.op_a, g.op_b, g.m, g.n, g.k, g.ldc, g.beta != 0};
  const auto at = known.find(key);
  return at != known.end() ? at->second : known.emplace(key, make_product(g)).first->second;
}

// rows x columns as they lie in memory, ld apart, rounded and packed.
void pack(const float* x, int64_t rows, int64_t columns, int64_t ld, std::vector<uint16_t>& out) {
  const auto size = static_cast<size_t>(rows * columns);
  if (size > out.capacity()) out = std::vector<uint16_t>(size);  // no more than that, and nothing is copied
  out.resize(size);
  for (int64_t r = 0; r < rows; ++r) round_to_bf16(x + r * ld, out.data() + r * columns, columns);
}

Memory memory(const dnnl_memory_desc_t& shape, const void* data) {
  dnnl_memory_t made = nullptr;
  check(dnnl_memory_create(&made, &shape, engine(), const_cast<void*>(data)), "wrap a matrix");
  return Memory(made);
}

}  // namespace

bool bf16_available() {
  return (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core_bf16) == dnnl_cpu_isa_avx512_core_bf16;
}

bool bf16_serves(const GemmCall& g) {
  constexpr double kFewest = 1e6;  // multiplications; below that float32's kernels for small products are as fast
  const double multiplications = static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k);
  return g.alpha == 1 && (g.beta == 0 || g.beta == 1) && g.m > 1 && g.n > 1 && multiplications >= kFewest;
}

void gemm_bf16(const GemmCall& g) {
  thread_local std::vector<uint16_t> a, b;
  thread_local std::vector<std::byte> scratch;
  const OpenMpThreads one(1);
  const Product& product = product_for(g);
  const bool a_turned = g.op_a == Op::kTranspose, b_turned = g.op_b == Op::kTranspose;
  pack(g.a, a_turned ? g.k : g.m, a_turned ? g.m : g.k, g.lda, a);
  pack(g.b, b_turned ? g.n : g.k, b_turned ? g.k : g.n, g.ldb, b);
  scratch.resize(dnnl_memory_desc_get_size(&product.scratch));
  const Memory in_a = memory(product.a, a.data()), in_b = memory(product.b, b.data()), out = memory(product.c, g.c),
               buffer = memory(product.scratch, scratch.data());
  const dnnl_exec_arg_t arguments[] = {
      {DNNL_ARG_SRC, in_a.get()}, {DNNL_ARG_WEIGHTS, in_b.get()}, {DNNL_ARG_DST, out.get()}, {DNNL_ARG_SCRATCHPAD, buffer.get()}};
  check(dnnl_primitive_execute(product.primitive.get(), stream(), 4, arguments), "multiply");
  check(dnnl_stream_wait(stream()), "multiply");
}

#endif

}  // namespace rowan
