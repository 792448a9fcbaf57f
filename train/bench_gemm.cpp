#include "train/bench_gemm.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>

#include "core/error.h"
#include "core/kernels/gemm_library.h"
#include "core/parallel.h"
#include "core/rng.h"
#include "core/tensor.h"
#include "train/machine_rates.h"

namespace rowan {
namespace {

using Clock = BenchClock;

struct Layer {
  const char* name;
  int64_t out, in, count;
};

std::vector<Layer> layers_of(const GemmBenchModel& model) {
  const int64_t d = model.d_model, l = model.n_layer;
  std::vector<Layer> layers = {{"qkv", 3 * d, d, l}, {"attn.out", d, d, l}, {"mlp.up", 4 * d, d, l}, {"mlp.down", d, 4 * d, l}};
  if (model.vocab_size > 0) layers.push_back({"head", model.vocab_size, d, 1});
  return layers;
}

struct Path {
  const char* name;
  std::function<void()> run;
  std::vector<double> samples = {};  // seconds a product
};

// A (m,k) op B -> C (m,n): the operands of a pass, as linear() multiplies them.
struct Product {
  const char* pass;
  GemmCall call;
};

struct Operands {
  Tensor x, w, y;  // (N,in), (out,in), (N,out); read only
  Tensor result;   // as large as the largest of them
};

// Ordinary numbers: zeros would draw less power, and let the processor run faster than a model does.
Operands operands_of(const Layer& layer, int64_t n) {
  Operands o{Tensor({n, layer.in}), Tensor({layer.out, layer.in}), Tensor({n, layer.out}), Tensor()};
  int64_t largest = 0;
  uint32_t site = 0;
  for (Tensor* t : {&o.x, &o.w, &o.y}) {
    fill_normal(*t, {.purpose = Purpose::kTest, .site = ++site}, 0, 1);
    largest = std::max(largest, t->size());
  }
  o.result = Tensor({largest});
  return o;
}

std::vector<Product> products_of(const Layer& layer, int64_t n, Operands& o) {
  const int64_t in = layer.in, out = layer.out;
  Real* c = o.result.data();
  return {{"forward", {Op::kNone, Op::kTranspose, n, out, in, 1, o.x.data(), in, o.w.data(), in, 0, c, out}},
          {"dx", {Op::kNone, Op::kNone, n, in, out, 1, o.y.data(), out, o.w.data(), in, 0, c, in}},
          {"dw", {Op::kTranspose, Op::kNone, out, in, n, 1, o.y.data(), out, o.x.data(), in, 0, c, in}}};
}

std::vector<Path> paths_for(const GemmCall& g, int threads) {
  std::vector<Path> paths = {
      {"rowan", [&g] { gemm(g.op_a, g.op_b, g.m, g.n, g.k, g.alpha, g.a, g.lda, g.b, g.ldb, g.beta, g.c, g.ldc); }}};
  const auto add = [&](const char* name, GemmLibrary library) {
    paths.push_back({name, [&g, library, threads] { run_gemm_with_library_threads(library, g, threads); }});
  };
  add("openblas", GemmLibrary::kOpenBlas);
  if (!kRealIsDouble) add("onednn", GemmLibrary::kOneDnn);
  return paths;
}

void take_sample(Path& path, const GemmBenchOptions& options) {
  std::this_thread::sleep_for(std::chrono::duration<double>(options.settle_seconds));
  const Clock::time_point warm = Clock::now();
  path.run();  // wakes the threads and fills the caches
  const double once = std::max(seconds_since(warm), 1e-7);
  const int repeats = std::max(1, static_cast<int>(std::min(options.sample_seconds / once, 1e4)));
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < repeats; ++i) path.run();
  path.samples.push_back(seconds_since(start) / repeats);
}

double operations(const GemmBenchRow& row) {
  return 2.0 * static_cast<double>(row.m) * static_cast<double>(row.n) * static_cast<double>(row.k);
}

void measure(const GemmBenchOptions& options, const Product& product, GemmBenchRow row, std::vector<GemmBenchRow>& rows) {
  const GemmCall& g = product.call;
  std::vector<Path> paths = paths_for(g, options.threads);
  for (int round = 0; round < options.rounds; ++round)
    for (Path& path : paths) take_sample(path, options);
  row.pass = product.pass;
  row.m = g.m, row.n = g.n, row.k = g.k;
  for (const Path& path : paths) {
    const double seconds = median_of(path.samples);
    row.path = path.name;
    row.median_ms = seconds * 1e3;
    row.gflops = operations(row) / seconds / 1e9;
    rows.push_back(row);
  }
}

}  // namespace

std::vector<GemmBenchModel> default_gemm_bench_models() {
  return {{"124M/256", 256, 768, 12, 50257},
          {"124M/1024", 1024, 768, 12, 0},
          {"10.6M/4096", 4096, 384, 6, 0},
          {"0.8M/768", 768, 128, 4, 0}};
}

std::vector<GemmBenchRow> bench_gemm(const GemmBenchOptions& options) {
  ROWAN_CHECK(options.rounds >= 1, "[bench gemm] ", options.rounds, " rounds; at least 1 is needed");
  const Threads threads(options.threads);
  std::vector<GemmBenchRow> rows;
  for (const GemmBenchModel& model : options.models) {
    ROWAN_CHECK(model.tokens > 0 && model.d_model > 0, "[bench gemm] model '", model.name, "' has no tokens or no width");
    for (const Layer& layer : layers_of(model)) {
      Operands operands = operands_of(layer, model.tokens);
      GemmBenchRow row;
      row.model = model.name;
      row.layer = layer.name;
      row.count = layer.count;
      for (const Product& product : products_of(layer, model.tokens, operands)) measure(options, product, row, rows);
    }
  }
  return rows;
}

std::vector<GemmBenchTotal> total_by_model(const std::vector<GemmBenchRow>& rows) {
  std::vector<GemmBenchTotal> totals;
  std::vector<double> work;
  for (const GemmBenchRow& row : rows) {
    const auto same = [&](const GemmBenchTotal& t) { return t.model == row.model && t.path == row.path; };
    auto it = std::find_if(totals.begin(), totals.end(), same);
    if (it == totals.end()) {
      totals.push_back({row.model, row.path});
      work.push_back(0);
      it = totals.end() - 1;
    }
    it->ms += row.median_ms * static_cast<double>(row.count);
    work[static_cast<size_t>(it - totals.begin())] += operations(row) * static_cast<double>(row.count);
  }
  for (size_t i = 0; i < totals.size(); ++i) totals[i].gflops = work[i] / (totals[i].ms * 1e-3) / 1e9;
  return totals;
}

}  // namespace rowan
