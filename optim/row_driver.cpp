#include "optim/row_driver.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/kernels/prefetch.h"
#include "core/parallel.h"
#include "optim/row_math.h"

namespace rowan {
namespace {

// A tile's weights, gradient and two moments fit the second cache level with room to spare.
constexpr int64_t kTileElements = 2048;

}  // namespace

RowDriver::RowDriver(const RowOptimizer& rule, RowState& state, Parameter& p, const StepInfo& info)
    : rule_(rule),
      state_(state),
      weights_(p.value().data()),
      rows_(state.rows()),
      width_(state.width()),
      scale_(static_cast<Real>(info.grad_scale)) {
  scalars_.step = state.step;
  scalars_.lr = rule.lr() * info.lr_factor;
  rule.fill_scalars(scalars_);

  const RowAxes& axes = rule.axes();
  const double decay = rule.weight_decay_of(p);
  if (rule.decays_weights()) {
    block_decay_ = decay;
  } else if (axes.decay == "coupled") {
    coupled_ = static_cast<Real>(decay);
  } else if (axes.decoupled()) {
    shrink_ = static_cast<Real>(1 - scalars_.lr * decay);
  }
  if (axes.clip == "value") clip_ = Clip::kValue;
  if (axes.clip == "row_norm") clip_ = Clip::kRowNorm;
  if (axes.clip == "cowclip") clip_ = Clip::kCowClip;
  mean_ = axes.duplicates == "mean" && p.kind() == GradKind::kRowSparse;
  row_counter_ = !state.row_steps.empty();
  rule_scales_ = rule.scales_gradient();
  if (rewrites_gradient()) rule_scales_ = false;  // in a copy of the gradient it is scaled already
  flat_ = rule.elementwise() && !row_counter_ && (clip_ == Clip::kNone || clip_ == Clip::kValue);
}

int64_t RowDriver::piece_rows() const {
  return rows_a_piece(width_);
}

// Columns are added up piece by piece: for the same bits, dense gradients are then cut as row-sparse ones.
int64_t RowDriver::dense_piece_rows() const {
  if (rule_.column_reduce() != ColumnReduce::kNone) return piece_rows();
  return std::max<int64_t>(1, kRowPieceElements / std::max<int64_t>(1, dense_width()));
}

// The pass over all pieces, and one before it when the rule has to know its columns first.
template <class Pass>
void RowDriver::run(int64_t rows, const Pass& pass) {
  if (rule_.column_reduce() == ColumnReduce::kNone) return pass();
  partial_.assign(static_cast<size_t>((rows + piece_rows() - 1) / piece_rows() * width_), 0.0);
  reducing_ = true;
  pass();
  reducing_ = false;
  if (rule_.columns_before_update()) finish_columns(rows);
  pass();
  if (!rule_.columns_before_update()) finish_columns(rows);
}

void RowDriver::finish_columns(int64_t rows) {
  if (rows == 0) return;
  std::vector<double> columns(static_cast<size_t>(width_), 0.0);
  const bool sum = rule_.column_reduce() == ColumnReduce::kSum;
  for (size_t i = 0; i < partial_.size(); ++i) {
    double& column = columns[i % columns.size()];
    column = sum ? column + partial_[i] : std::max(column, partial_[i]);
  }
  rule_.finish_columns(columns, rows, block_of({nullptr, nullptr, 0, rows_, width_}));
}

void RowDriver::dense(const Tensor& grad) {
  run(rows_, [&] {
    parallel_ranges(dense_length(), dense_piece_rows(),
                    [&](int64_t begin, int64_t end) { dense_rows(grad.data(), begin, end, columns_of(begin)); });
  });
}

int64_t RowDriver::dense_pieces() const {
  return (dense_length() + dense_piece_rows() - 1) / dense_piece_rows();
}

void RowDriver::dense_piece(const Tensor& grad, int64_t piece) const {
  const int64_t begin = piece * dense_piece_rows();
  dense_rows(grad.data(), begin, std::min(dense_length(), begin + dense_piece_rows()), nullptr);
}

void RowDriver::dense_rows(const Real* grad, int64_t begin, int64_t end, double* columns) const {
  const int64_t width = dense_width(), tile_rows = std::max<int64_t>(1, kTileElements / std::max<int64_t>(1, width));
  Tensor scratch = rewrites_gradient() ? Tensor({tile_rows * width}) : Tensor();
  for (int64_t first = begin; first < end; first += tile_rows) {
    const Tile tile{nullptr, nullptr, first, std::min(tile_rows, end - first), width};
    update(tile, grad + first * width, scratch.data(), columns);
  }
}

void RowDriver::touched(const RowSparseGrad& grad) {
  run(static_cast<int64_t>(grad.ids().size()), [&] { touched_pass(grad); });
}

void RowDriver::touched_pass(const RowSparseGrad& grad) {
  const int64_t count = static_cast<int64_t>(grad.ids().size()), tile_rows = rows_of(kTileElements);
  parallel_ranges(count, piece_rows(), [&](int64_t begin, int64_t end) {
    Tensor scratch = rewrites_gradient() ? Tensor({tile_rows * width_}) : Tensor();
    for (int64_t first = begin; first < end; first += tile_rows) {
      const Tile tile{grad.ids().data() + first, grad.counts().data() + first, 0, std::min(tile_rows, end - first), width_};
      prefetch(tile);
      update(tile, grad.values().data() + first * width_, scratch.data(), columns_of(begin));
    }
  });
}

void RowDriver::fused(const Occurrences& o) {
  run(std::ssize(o.sorted.unique), [&] { fused_pass(o); });
}

void RowDriver::fused_pass(const Occurrences& o) {
  const int64_t unique = o.unique(), tile_rows = rows_of(kTileElements);
  std::vector<int32_t> counts(static_cast<size_t>(unique));
  std::map<int64_t, Tensor> long_sums;
  for (int64_t k = 0; k < unique; ++k) {
    counts[static_cast<size_t>(k)] = static_cast<int32_t>(o.run_length(k));
    if (o.run_length(k) < kLongRun) continue;
    Tensor& sum = long_sums[k] = Tensor({width_});
    parallel_ranges(width_, kLongRunColumns, [&](int64_t from, int64_t to) { sum_run(o, k, from, to, sum.data()); });
  }
  parallel_ranges(unique, piece_rows(), [&](int64_t begin, int64_t end) {
    Tensor scratch({tile_rows * width_});
    for (int64_t first = begin; first < end; first += tile_rows) {
      const Tile tile{o.sorted.unique.data() + first, counts.data() + first, 0, std::min(tile_rows, end - first), width_};
      prefetch(tile);
      gather_tile(o, tile, first, long_sums, scratch.data());
      update(tile, scratch.data(), scratch.data(), columns_of(begin));
    }
  });
}

// The summed gradients of a tile that begins at unique id `first`.
void RowDriver::gather_tile(const Occurrences& o, const Tile& tile, int64_t first, const std::map<int64_t, Tensor>& long_sums,
                            Real* out) const {
  for (int64_t k = first; k < first + tile.rows; ++k, out += width_) {
    if (o.run_length(k) < kLongRun) {
      sum_run(o, k, 0, width_, out);
    } else {
      std::copy_n(long_sums.at(k).data(), width_, out);
    }
  }
}

// Weights and state of the tile's rows, which lie anywhere in memory: all are asked for before the first is needed. Of a long row
// the beginning, from where the processor goes on by itself; more would hold up what is asked for next.
void RowDriver::prefetch(const Tile& tile) const {
  constexpr int64_t kMost = 512 / static_cast<int64_t>(sizeof(Real));
  for (int64_t k = 0; k < tile.rows; ++k) {
    const int64_t row = tile.ids[k];
    prefetch_row(weights_ + row * width_, std::min(kMost, width_));
    for (size_t s = 0; s < state_.layout.size(); ++s) {
      const int64_t stride = state_.stride(s);
      if (!state_.slots[s].empty()) prefetch_row(state_.slots[s].data() + row * stride, std::min(kMost, stride));
      if (!state_.bytes[s].empty()) prefetch_row(state_.bytes[s].data() + row * stride, std::min(kMost, stride));
    }
  }
}

// Weights decay with the first occurrence.
void RowDriver::sequential(const Occurrences& o) {
  const Real decay_once = shrink_;
  const int64_t unique = std::ssize(o.sorted.unique);
  shrink_ = 1;
  parallel_ranges(unique, piece_rows(), [&](int64_t begin, int64_t end) {
    Tensor scratch({width_});
    for (int64_t k = begin; k < end; ++k) {
      const Tile tile{o.sorted.unique.data() + k, nullptr, 0, 1, width_};
      RowBlock b = block_of(tile);
      const std::vector<StepScalars> counted = row_counter_ ? count_rows(tile) : std::vector<StepScalars>{};
      if (row_counter_) b.row_scalars = counted.data();
      const auto from = static_cast<size_t>(o.sorted.begin[static_cast<size_t>(k)]);
      const auto count = static_cast<int32_t>(o.run_length(k));
      for (size_t i = from; i < from + static_cast<size_t>(count); ++i) {
        b.grads = o.rows[static_cast<size_t>(o.sorted.order[i])];
        if (rewrites_gradient()) {
          rewrite_gradient(b, &count, b.grads, scratch.data(), i == from ? coupled_ : Real{0});
          b.grads = scratch.data();
        }
        if (i == from && decay_once != 1)
          scale_row(b.weight(0), width_, decay_once);  // after the bounds that go by |w|, as in update()
        rule_.update_rows(b);
        b.weight_decay = 0;
      }
    }
  });
  shrink_ = decay_once;
}

void RowDriver::sweep(const RowSparseGrad& grad) {
  run(rows_, [&] { sweep_pass(grad); });
}

void RowDriver::sweep_pass(const RowSparseGrad& grad) {
  const std::vector<int32_t>& ids = grad.ids();
  const int64_t tile_rows = rows_of(kTileElements);
  const auto next_touched = [&](int64_t row) { return std::lower_bound(ids.begin(), ids.end(), row) - ids.begin(); };
  parallel_ranges(rows_, piece_rows(), [&](int64_t begin, int64_t end) {
    Tensor full({tile_rows * width_});  // the tile's gradient, zeros in rows without one
    std::vector<int32_t> counts(static_cast<size_t>(tile_rows));
    for (int64_t first = begin; first < end; first += tile_rows) {
      const Tile tile{nullptr, counts.data(), first, std::min(tile_rows, end - first), width_};
      std::fill_n(full.data(), tile.rows * width_, Real{0});
      std::fill(counts.begin(), counts.end(), 1);
      for (auto k = next_touched(first); k < std::ssize(ids) && ids[static_cast<size_t>(k)] < first + tile.rows; ++k) {
        const int64_t place = ids[static_cast<size_t>(k)] - first;
        std::copy_n(grad.row(k).data(), width_, full.data() + place * width_);
        counts[static_cast<size_t>(place)] = grad.counts()[static_cast<size_t>(k)];
      }
      update(tile, full.data(), full.data(), columns_of(begin));
    }
  });
}

// `scratch` may be `grad` itself; it is not used when the gradient can be taken as it is.
void RowDriver::update(const Tile& tile, const Real* grad, Real* scratch, double* columns) const {
  RowBlock rows = block_of(tile);
  rows.grads = grad;
  if (rewrites_gradient()) {
    rewrite_gradient(rows, tile.counts, grad, scratch, coupled_);
    rows.grads = scratch;
  }
  if (reducing_) return rule_.reduce_rows(rows, {columns, static_cast<size_t>(width_)});
  const std::vector<StepScalars> counted = row_counter_ ? count_rows(tile) : std::vector<StepScalars>{};
  if (row_counter_) rows.row_scalars = counted.data();
  if (flat_ && tile.ids == nullptr) {  // consecutive rows are handed over as one long row
    rows.width *= rows.rows;
    rows.rows = 1;
  }
  shrink(rows);
  rule_.update_rows(rows);
}

RowBlock RowDriver::block_of(const Tile& tile) const {
  const int64_t offset = tile.first * tile.width;
  RowBlock b;
  b.rows = tile.rows;
  b.width = tile.width;
  b.lr = scalars_.lr;
  b.weight_decay = block_decay_;
  if (rule_scales_) b.grad_scale = scale_;
  b.ids = tile.ids;
  b.weights = weights_ + offset;
  state_.point(b, 0);
  for (size_t s = 0; s < state_.layout.size(); ++s) {
    if (flat_) b.stride[s] = tile.width;  // elementwise rules: in a table seen as one column, an element is a row
    if (b.slots[s] != nullptr) b.slots[s] += tile.first * b.stride[s];
    if (b.byte_slots[s] != nullptr) b.byte_slots[s] += tile.first * b.stride[s];
  }
  if (b.last_touches != nullptr) b.last_touches += tile.first;
  b.step_scalars = &scalars_;
  return b;
}

void RowDriver::rewrite_gradient(const RowBlock& rows, const int32_t* counts, const Real* from, Real* to, Real coupled) const {
  RowBlock b = rows;
  const bool by_row = mean_ || clip_ == Clip::kRowNorm || clip_ == Clip::kCowClip;
  if (!by_row && b.ids == nullptr) {  // consecutive rows in one go
    b.width *= b.rows;
    b.rows = 1;
  }
  for (int64_t k = 0; k < b.rows; ++k) {
    Real* g = to + k * b.width;
    const int32_t count = counts == nullptr ? 1 : counts[k];
    const Real factor = mean_ ? scale_ / static_cast<Real>(count) : scale_;
    if (from == to) {
      if (factor != 1) scale_row(g, b.width, factor);
    } else {
      scaled_copy(from + k * b.width, b.width, factor, g);
    }
    if (clip_ != Clip::kNone) clip_row(b, k, count, g);
    if (coupled != 0) add_scaled(b.weight(k), b.width, coupled, g);
  }
}

void RowDriver::clip_row(const RowBlock& b, int64_t k, int32_t count, Real* g) const {
  const RowAxes& axes = rule_.axes();
  if (clip_ == Clip::kValue) return clamp_row(g, b.width, static_cast<Real>(axes.clip_bound));
  double bound = axes.clip_bound;
  if (clip_ == Clip::kCowClip) bound *= count * std::max(std::sqrt(sum_squares(b.weight(k), b.width)), axes.clip_floor);
  const double norm = std::sqrt(sum_squares(g, b.width));
  if (norm > bound) scale_row(g, b.width, static_cast<Real>(bound / norm));
}

void RowDriver::shrink(RowBlock& b) const {
  if (shrink_ == 1) return;
  if (rule_.shrinks_weights()) {
    b.shrink = shrink_;
    return;
  }
  for (int64_t k = 0; k < b.rows; ++k) scale_row(b.weight(k), b.width, shrink_);
}

// Rows of a tile often have the same count (they are touched together, or for the first time): neighbours share the work.
std::vector<StepScalars> RowDriver::count_rows(const Tile& tile) const {
  std::vector<StepScalars> scalars(static_cast<size_t>(tile.rows));
  for (int64_t k = 0; k < tile.rows; ++k) {
    const int64_t row = tile.ids == nullptr ? tile.first + k : tile.ids[k];
    const int32_t count = ++state_.row_steps[static_cast<size_t>(row)];
    StepScalars& s = scalars[static_cast<size_t>(k)];
    if (k > 0 && scalars[static_cast<size_t>(k - 1)].step == count) {
      s = scalars[static_cast<size_t>(k - 1)];
    } else {
      s.step = count;
      s.lr = scalars_.lr;
      rule_.fill_scalars(s);
    }
  }
  return scalars;
}

}  // namespace rowan
