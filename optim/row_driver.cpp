#include "optim/row_driver.h"

#include <algorithm>

#include "core/parallel.h"
#include "optim/row_math.h"

namespace rowan {
namespace {

// A tile's weights, gradient and two moments fit the second cache level with room to spare; a piece takes tens of microseconds,
// against which handing it to a thread costs nothing.
constexpr int64_t kTileElements = 2048;
constexpr int64_t kPieceElements = 16384;

}  // namespace

RowDriver::RowDriver(const RowOptimizer& rule, RowOptimizer::State& state, Parameter& p, const StepInfo& info)
    : rule_(rule), state_(state), weights_(p.value().data()), scale_(static_cast<Real>(info.grad_scale)) {
  const bool table = p.shape().rank() >= 2;
  width_ = table ? p.shape().back() : p.shape().size();
  rows_ = table ? p.shape().rows() : 1;
  scalars_.step = state.step;
  scalars_.lr = rule.lr() * info.lr_factor;
  rule.fill_scalars(scalars_);

  const RowAxes& axes = rule.axes();
  const double decay = rule.weight_decay_of(p);
  if (rule.decays_weights()) {
    block_decay_ = decay;
  } else if (axes.decay == "coupled") {
    coupled_ = static_cast<Real>(decay);
  } else if (axes.decay == "touched") {
    shrink_ = static_cast<Real>(1 - scalars_.lr * decay);
  }
  mean_ = axes.duplicates == "mean" && p.kind() == GradKind::kRowSparse;
  row_counter_ = !state.row_steps.empty();
  flat_ = rule.elementwise() && !row_counter_;
}

void RowDriver::dense(const Tensor& grad) {
  const auto* from = grad.data();
  if (flat_) {
    dense_rows(from, rows_ * width_, 1);
  } else {
    dense_rows(from, rows_, width_);
  }
}

void RowDriver::dense_rows(const Real* grad, int64_t rows, int64_t width) {
  const int64_t wide = std::max<int64_t>(1, width);
  const int64_t piece_rows = std::max<int64_t>(1, kPieceElements / wide), tile_rows = std::max<int64_t>(1, kTileElements / wide);
  parallel_ranges(rows, piece_rows, [&](int64_t begin, int64_t end) {
    Tensor scratch = rewrites_gradient() ? Tensor({tile_rows * width}) : Tensor();
    for (int64_t first = begin; first < end; first += tile_rows) {
      Tile tile{nullptr, first, std::min(tile_rows, end - first), width, grad + first * width};
      RowBlock b = block_of(tile);
      if (!scratch.empty()) {
        load_gradient(b, tile.grads, nullptr, scratch.data());
        b.grads = scratch.data();
      }
      update(b, tile);
    }
  });
}

void RowDriver::touched(const RowSparseGrad& grad) {
  const int64_t count = static_cast<int64_t>(grad.ids().size()), tile_rows = rows_of(kTileElements);
  parallel_ranges(count, rows_of(kPieceElements), [&](int64_t begin, int64_t end) {
    Tensor scratch = rewrites_gradient() ? Tensor({tile_rows * width_}) : Tensor();
    for (int64_t first = begin; first < end; first += tile_rows) {
      Tile tile{grad.ids().data() + first, 0, std::min(tile_rows, end - first), width_, grad.values().data() + first * width_};
      RowBlock b = block_of(tile);
      if (!scratch.empty()) {
        load_gradient(b, tile.grads, grad.counts().data() + first, scratch.data());
        b.grads = scratch.data();
      }
      update(b, tile);
    }
  });
}

void RowDriver::sweep(const RowSparseGrad& grad) {
  const std::vector<int32_t>& ids = grad.ids();
  const int64_t tile_rows = rows_of(kTileElements);
  const auto next_touched = [&](int64_t row) { return std::lower_bound(ids.begin(), ids.end(), row) - ids.begin(); };
  parallel_ranges(rows_, rows_of(kPieceElements), [&](int64_t begin, int64_t end) {
    Tensor full({tile_rows * width_});  // the tile's gradient, zeros in rows without one
    for (int64_t first = begin; first < end; first += tile_rows) {
      Tile tile{nullptr, first, std::min(tile_rows, end - first), width_, full.data()};
      std::fill_n(full.data(), tile.rows * width_, Real{0});
      for (auto k = next_touched(first); k < std::ssize(ids) && ids[static_cast<size_t>(k)] < first + tile.rows; ++k) {
        const Real share = mean_ ? scale_ / static_cast<Real>(grad.counts()[static_cast<size_t>(k)]) : scale_;
        scaled_copy(grad.row(k).data(), width_, share, full.data() + (ids[static_cast<size_t>(k)] - first) * width_);
      }
      const RowBlock b = block_of(tile);
      if (coupled_ != 0) add_scaled(b.weights, tile.rows * width_, coupled_, full.data());
      update(b, tile);
    }
  });
}

void RowDriver::load_gradient(const RowBlock& b, const Real* from, const int32_t* counts, Real* to) const {
  for (int64_t k = 0; k < b.rows; ++k) {
    const Real share = mean_ && counts != nullptr ? scale_ / static_cast<Real>(counts[k]) : scale_;
    scaled_copy(from + k * b.width, b.width, share, to + k * b.width);
    if (coupled_ != 0) add_scaled(b.weight(k), b.width, coupled_, to + k * b.width);
  }
}

// Joined rows are handed over as one long row.
RowBlock RowDriver::block_of(const Tile& tile) const {
  const bool join = flat_ && tile.ids == nullptr;
  const int64_t offset = tile.first * tile.width;
  RowBlock b;
  b.rows = join ? 1 : tile.rows;
  b.width = join ? tile.rows * tile.width : tile.width;
  b.lr = scalars_.lr;
  b.weight_decay = block_decay_;
  b.ids = tile.ids;
  b.weights = weights_ + offset;
  b.grads = tile.grads;
  for (size_t s = 0; s < state_.slots.size(); ++s) {
    b.per_element[s] = state_.per_element[s];
    b.slots[s] = state_.slots[s].data() + (b.per_element[s] ? offset : tile.first);
  }
  b.step_scalars = &scalars_;
  return b;
}

void RowDriver::update(RowBlock b, const Tile& tile) const {
  std::vector<StepScalars> counted;
  if (row_counter_) {
    counted = count_rows(tile);
    b.row_scalars = counted.data();
  }
  if (shrink_ != 1)
    for (int64_t k = 0; k < b.rows; ++k) scale_row(b.weight(k), b.width, shrink_);
  rule_.update_rows(b);
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
