#include "optim/row_catch_up.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "core/parallel.h"
#include "optim/row_math.h"

namespace rowan {

double RowJump::decay_from(int64_t from) const {
  if (from >= count) return 1;
  const double before = missed[from].log_decay - std::log(missed[from].shrink);
  return std::exp(missed[count - 1].log_decay - before);
}

bool RowJump::regular() const {
  return missed[0].shrink > 0 && missed[count - 1].irregular == missed[0].irregular;
}

StepRecord make_record(const RowOptimizer& rule, const RowState& state, int64_t step, double lr) {
  const double weight_decay = state.decays ? rule.weight_decay_for(state.shape) : 0;
  StepRecord r;
  r.scalars.step = step;
  r.scalars.lr = lr;
  rule.fill_scalars(r.scalars);
  if (rule.axes().decoupled() && !rule.decays_weights()) r.shrink = static_cast<Real>(1 - lr * weight_decay);
  if (!state.history.empty()) {
    r.log_decay = state.history.back().log_decay;
    r.irregular = state.history.back().irregular;
  }
  if (r.shrink > 0) {
    r.log_decay += std::log(r.shrink);
  } else {
    ++r.irregular;
  }
  return r;
}

RowCatchUp::RowCatchUp(const RowOptimizer& rule, RowState& state, Parameter& p)
    : rule_(rule),
      state_(state),
      weights_(p.value().data()),
      width_(state.width()),
      decay_only_(rule.axes().untouched == "frozen"),
      closed_(rule.axes().catch_up == "closed") {
  const double decay = rule.weight_decay_of(p);
  if (rule.axes().decay == "coupled") coupled_ = static_cast<Real>(decay);
  if (rule.decays_weights()) {
    block_decay_ = decay;
    coupled_ = 0;
  }
  if (rule.idle_without_gradient() && coupled_ == 0 && closed_) decay_only_ = true;
}

void RowCatchUp::rows(std::span<const int32_t> ids) {
  if (state_.history.empty()) return;
  run(static_cast<int64_t>(ids.size()), [&](int64_t k) { return int64_t{ids[static_cast<size_t>(k)]}; });
}

void RowCatchUp::all() {
  if (state_.history.empty()) return;
  run(state_.rows(), [](int64_t k) { return k; });
  state_.forget();
}

bool RowCatchUp::jumps(const RowOptimizer& rule) {
  return rule.axes().catch_up == "closed" || rule.axes().decay == "deferred";
}

void RowCatchUp::read_ahead() {
  if (state_.history.empty() || !state_.ahead_rows.empty()) return;
  for (int64_t r = 0; r < state_.rows(); ++r)
    if (state_.last_steps[static_cast<size_t>(r)] < state_.step) state_.ahead_rows.push_back(static_cast<int32_t>(r));
  if (state_.ahead_rows.empty()) return;
  const int64_t count = std::ssize(state_.ahead_rows);
  state_.ahead_base = Tensor({count, width_});
  parallel_ranges(count, piece_rows(), [&](int64_t begin, int64_t end) {
    Tensor gradient = Tensor::zeros({width_});
    for (int64_t k = begin; k < end; ++k) {
      const int64_t r = state_.ahead_rows[static_cast<size_t>(k)];
      std::copy_n(weights_ + r * width_, width_, state_.ahead_base.row(k).data());
      weights_ahead(r, gradient.data());
    }
  });
}

void RowCatchUp::take_back() {
  parallel_ranges(std::ssize(state_.ahead_rows), piece_rows(), [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k)
      std::copy_n(state_.ahead_base.row(k).data(), width_, weights_ + state_.ahead_rows[static_cast<size_t>(k)] * width_);
  });
  state_.ahead_rows.clear();
  state_.ahead_base = Tensor();
}

// row(), with the row's state as it was afterwards.
void RowCatchUp::weights_ahead(int64_t r, Real* zeros) const {
  RowBlock at;
  state_.point(at, r);
  std::array<std::vector<Real>, kMaxSlots> values;
  std::array<std::vector<uint8_t>, kMaxSlots> bytes;
  for (size_t s = 0; s < state_.layout.size(); ++s) {
    if (at.slots[s] != nullptr) values[s].assign(at.slots[s], at.slots[s] + at.stride[s]);
    if (at.byte_slots[s] != nullptr) bytes[s].assign(at.byte_slots[s], at.byte_slots[s] + at.stride[s]);
  }
  int32_t& last = state_.last_steps[static_cast<size_t>(r)];
  const int32_t stood_at = last;
  row(r, zeros);
  last = stood_at;
  for (size_t s = 0; s < state_.layout.size(); ++s) {
    std::copy(values[s].begin(), values[s].end(), at.slots[s]);
    std::copy(bytes[s].begin(), bytes[s].end(), at.byte_slots[s]);
  }
}

int64_t RowCatchUp::piece_rows() const {
  return std::max<int64_t>(1, 2048 / std::max<int64_t>(1, width_));
}

// The cost of a row is that of its gap, so pieces are small and whoever is free takes the next.
template <class RowOf>
void RowCatchUp::run(int64_t count, const RowOf& row_of) {
  std::vector<std::pair<int64_t, int64_t>> made_up(static_cast<size_t>((count + piece_rows() - 1) / piece_rows()));  // steps, rows
  parallel_ranges(count, piece_rows(), [&](int64_t begin, int64_t end) {
    Tensor gradient = Tensor::zeros({width_});
    for (int64_t k = begin; k < end; ++k) {
      const int64_t r = row_of(k);
      const int64_t gap = state_.step - state_.last_steps[static_cast<size_t>(r)];
      auto& [steps, rows] = made_up[static_cast<size_t>(begin / piece_rows())];
      steps += gap;
      rows += gap > 0 ? 1 : 0;
      row(r, gradient.data());
    }
  });
  for (const auto& [steps, rows] : made_up) {
    state_.caught_up += steps;
    state_.caught_up_rows += rows;
  }
}

void RowCatchUp::row(int64_t row, Real* gradient) const {
  int32_t& last = state_.last_steps[static_cast<size_t>(row)];
  const int64_t count = state_.step - last;
  if (count == 0) return;
  ROWAN_ASSERT(last >= state_.base());
  const StepRecord* first = state_.history.data() + (last - state_.base());
  if (!(decay_only_ || closed_) || !jump(row, first, count)) replay(row, first, count, gradient);
  last = static_cast<int32_t>(state_.step);
}

RowJump RowCatchUp::jump_of(int64_t row, const StepRecord* first, int64_t count) const {
  RowJump j;
  j.width = width_;
  j.weight = weights_ + row * width_;
  RowBlock at;
  state_.point(at, row);
  j.slots = at.slots;
  j.missed = first;
  j.count = count;
  j.max_lr = state_.max_lr;
  return j;
}

bool RowCatchUp::jump(int64_t row, const StepRecord* first, int64_t count) const {
  const RowJump j = jump_of(row, first, count);
  if (!j.regular()) return false;
  if (!decay_only_) return rule_.jump(j);
  const double decay = j.decay_from(0);
  if (decay != 1) scale_row(j.weight, width_, static_cast<Real>(decay));
  return true;
}

// Operation by operation what a sweep over the table does to a row whose gradient is zero.
void RowCatchUp::replay(int64_t row, const StepRecord* first, int64_t count, Real* gradient) const {
  Real* const weight = weights_ + row * width_;
  RowBlock b;
  b.rows = 1;
  b.width = width_;
  b.weight_decay = block_decay_;
  b.weights = weight;
  b.grads = gradient;
  state_.point(b, row);
  for (int64_t i = 0; i < count; ++i) {
    const StepRecord& step = first[i];
    if (coupled_ != 0) {
      std::fill_n(gradient, width_, Real{0});
      add_scaled(weight, width_, coupled_, gradient);
    }
    if (step.shrink != 1) scale_row(weight, width_, static_cast<Real>(step.shrink));
    if (decay_only_) continue;  // rows are frozen: nothing but decay is made up
    b.lr = step.scalars.lr;
    b.step_scalars = &step.scalars;
    rule_.update_rows(b);
  }
}

}  // namespace rowan
