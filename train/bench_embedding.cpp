#include "train/bench_embedding.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "core/ids.h"
#include "core/ops/gather.h"
#include "core/parallel.h"
#include "core/parameter.h"
#include "core/rng.h"
#include "optim/optimizer.h"
#include "optim/row_math.h"
#include "train/machine_rates.h"
#include "train/zipf_data.h"

namespace rowan {
namespace {

using Clock = std::chrono::steady_clock;

double ms_between(Clock::time_point a, Clock::time_point b) {
  return std::chrono::duration<double, std::milli>(b - a).count();
}

struct Sample {
  std::array<double, 4> parts{};  // gather, backward, coalesce, update
  double total = 0, touched = 0;
};

Sample run_once(Parameter& table, Optimizer& rule, const Ids& ids, const Tensor& dy, int64_t step) {
  Sample s;
  std::array<Clock::time_point, 5> t;
  t[0] = Clock::now();
  const Variable y = gather(table.var, ids);
  t[1] = Clock::now();
  backward(y, dy);
  t[2] = Clock::now();
  s.touched = static_cast<double>(table.row_grad().occurrences().unique());
  t[3] = Clock::now();
  rule.step("table", table, {.step = step});
  t[4] = Clock::now();
  for (size_t i = 0; i < s.parts.size(); ++i) s.parts[i] = ms_between(t[i], t[i + 1]);
  s.total = ms_between(t[0], t[4]);
  return s;
}

class IdStream {
 public:
  IdStream(int64_t vocab, double exponent, int64_t tokens)
      : data_({.vocab_size = vocab, .exponent = exponent, .answers = 1}), tokens_(tokens) {}

  Ids next() {
    Ids ids({1, tokens_});
    for (int64_t i = 0; i < tokens_; ++i) ids.values()[static_cast<size_t>(i)] = data_.id(ZipfSplit::kTrain, drawn_, i);
    ++drawn_;
    return ids;
  }

 private:
  ZipfData data_;
  int64_t tokens_;
  int64_t drawn_ = 0;
};

// The loop of plain_ms: rows of three arrays, of which the table is one.
class PlainRows {
 public:
  PlainRows(Tensor table, int64_t tokens)
      : arrays_{table, Tensor::zeros(table.shape()), Tensor::zeros(table.shape())}, y_({tokens, table.shape().back()}) {}

  double run_once(const Ids& ids, const Tensor& dy) {
    const SortedIds sorted = sort_ids(ids.values());
    const int64_t width = y_.shape().back(), unique = std::ssize(sorted.unique);
    const auto start = Clock::now();
    parallel_ranges(ids.size(), rows_a_piece(width), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) std::copy_n(arrays_[0].data() + ids[i] * width, width, y_.data() + i * width);
    });
    parallel_ranges(unique, rows_a_piece(width), [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        const auto at = static_cast<size_t>(k);
        const Real* const g = dy.data() + sorted.order[static_cast<size_t>(sorted.begin[at])] * width;
        for (Tensor& a : arrays_) add_row(g, width, a.data() + sorted.unique[at] * width);
      }
    });
    return ms_between(start, Clock::now());
  }

 private:
  std::array<Tensor, 3> arrays_;
  Tensor y_;
};

EmbeddingBench summarize(const EmbeddingBenchOptions& o, const std::vector<Sample>& samples, double copy_rate) {
  const auto column = [&](auto&& of) {
    std::vector<double> values;
    for (const Sample& s : samples) values.push_back(of(s));
    return values;
  };
  EmbeddingBench r;
  r.repeats = static_cast<int64_t>(samples.size());
  r.touched_rows = median_of(column([](const Sample& s) { return s.touched; }));
  double* const parts[] = {&r.gather_ms, &r.backward_ms, &r.coalesce_ms, &r.update_ms};
  for (size_t i = 0; i < 4; ++i) *parts[i] = median_of(column([i](const Sample& s) { return s.parts[i]; }));
  const std::vector<double> totals = column([](const Sample& s) { return s.total; });
  r.total_ms = median_of(totals);
  r.low_ms = quantile_of(totals, 0.1);
  r.high_ms = quantile_of(totals, 0.9);
  const double bytes = (28 * r.touched_rows + 8 * static_cast<double>(o.tokens)) * static_cast<double>(o.dim);
  r.limit_ms = bytes / copy_rate * 1e3;
  r.gb_per_s = bytes / (r.total_ms * 1e-3) / 1e9;
  r.copy_gb_per_s = copy_rate / 1e9;
  return r;
}

}  // namespace

EmbeddingBench bench_embedding(const EmbeddingBenchOptions& o) {
  ROWAN_CHECK(o.vocab >= 1 && o.dim >= 1 && o.tokens >= 1, "[bench embedding] vocab, dim and tokens must be positive; they are ",
              o.vocab, ", ", o.dim, " and ", o.tokens);
  std::unique_ptr<Optimizer> rule = make_optimizer(o.rule);
  Parameter table(Tensor::full({o.vocab, o.dim}, Real(0.02)), GradKind::kRowSparse);
  rule->prepare("table", table);
  Tensor dy({1, o.tokens, o.dim});
  fill_normal(dy, {.purpose = Purpose::kTest}, 0, 1e-3);
  IdStream stream(o.vocab, o.zipf, o.tokens);
  const Ids first = stream.next();
  const auto next_ids = [&] { return o.same_ids ? first : stream.next(); };
  int64_t step = 0;
  for (int warm = 0; warm < 3; ++warm) run_once(table, *rule, next_ids(), dy, ++step);
  const double before = measured_copy_rate();
  constexpr int64_t kFewest = 20, kMost = 2000;
  constexpr double kLongest = 2000;
  std::vector<Sample> samples;
  const auto start = Clock::now();
  const auto enough = [&] {
    const auto done = static_cast<int64_t>(samples.size());
    return o.repeats > 0 ? done >= o.repeats : done >= kFewest && (ms_between(start, Clock::now()) >= kLongest || done >= kMost);
  };
  while (!enough()) samples.push_back(run_once(table, *rule, next_ids(), dy, ++step));
  EmbeddingBench result = summarize(o, samples, std::max(before, measured_copy_rate()));

  rule.reset();  // its memory serves the plain loop
  PlainRows plain(table.value(), o.tokens);
  std::vector<double> plain_ms;
  for (int64_t i = 0; i < std::clamp<int64_t>(result.repeats / 4, 5, 500); ++i) plain_ms.push_back(plain.run_once(next_ids(), dy));
  result.plain_ms = median_of(plain_ms);
  return result;
}

}  // namespace rowan
