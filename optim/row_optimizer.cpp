#include "optim/row_optimizer.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

#include "optim/row_catch_up.h"
#include "optim/row_driver.h"

namespace rowan {
namespace {

constexpr int64_t kLargestStep = INT32_MAX - 1;  // rows remember steps in 32 bits
// After so many steps without a flush all rows are caught up, so that the history stays small beside a table worth deferring.
constexpr size_t kLongestHistory = size_t{1} << 18;

// Loaded numbers index tables and are counted up: none may be out of its range.
void check_count(const std::string& what, int64_t loaded, int64_t low, int64_t high) {
  if (loaded < low || loaded > high) fail_data("[optim] state '", what, "' holds ", loaded, "; expected ", low, " to ", high);
}

template <class Vector>
void check_size(const std::string& name, const char* what, const Vector& loaded, int64_t size) {
  if (std::ssize(loaded) != size)
    fail_data("[optim] state '", name, "/", what, "' has ", loaded.size(), " entries; expected ", size);
}

int64_t longest_run(const Occurrences& o) {
  int64_t longest = 0;
  for (int64_t k = 0; k < o.unique(); ++k) longest = std::max(longest, o.run_length(k));
  return longest;
}

int64_t longest(const std::vector<int32_t>& runs) {
  return runs.empty() ? 0 : *std::max_element(runs.begin(), runs.end());
}

// Adds the time of its scope to `seconds`.
class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) : seconds_(seconds), start_(std::chrono::steady_clock::now()) {}
  ~Stopwatch() { seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& seconds_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace

void RowOptimizer::visit(FieldVisitor& v) {
  Optimizer::visit(v);
  axes_.visit(v);
}

void RowOptimizer::validate() const {
  Optimizer::validate();
  axes_.validate(rule(), weight_decay());
  ROWAN_CHECK(axes_.catch_up != "closed" || can_jump(), "[", rule(),
              "] catch_up = \"closed\": this rule has no closed form for missed steps; ", "use catch_up = \"replay\"");
  ROWAN_CHECK(!axes_.tracks_rows() || column_reduce() == ColumnReduce::kNone, "[", rule(), "] untouched = \"", axes_.untouched,
              "\", decay = \"", axes_.decay,
              "\": its columns are shared by all rows, so a row that lags behind can't be brought up to date alone; ",
              axes_.decay == "deferred" ? "use decay = \"touched\"" : "use untouched = \"dense\" or \"frozen\"");
  ROWAN_CHECK(axes_.duplicates != "sequential" || column_reduce() == ColumnReduce::kNone, "[", rule(),
              "] duplicates = \"sequential\": its columns are shared by all rows and need every row's gradient first");
  const bool pointless = axes_.decay == "deferred" || (axes_.decay == "coupled" && weight_decay() > 0);
  ROWAN_CHECK(!decays_weights() || !pointless, "[", rule(), "] decay = \"", axes_.decay,
              "\": this rule decays weights inside its formula, in its own way and in the rows that it updates; use \"touched\"");
}

void RowOptimizer::prepare(const std::string& name, Parameter& p) {
  check_kind(name, p);
  if (!states_.contains(name)) states_.emplace(name, make_state(p.shape(), p.kind(), p.decays));
  state_of(name, p).decays = p.decays;
  if (p.kind() == GradKind::kRowSparse) p.row_grad().keep_occurrences(axes_.duplicates == "sequential");
}

RowState RowOptimizer::make_state(const Shape& shape, GradKind kind, bool decays) const {
  RowState state;
  state.shape = shape;
  state.kind = kind;
  state.decays = decays;
  const std::vector<Slot> wanted = slots();
  ROWAN_ASSERT(wanted.size() <= kMaxSlots);
  for (const Slot& slot : wanted) state.add_slot(slot);
  const auto rows = static_cast<size_t>(state.rows());
  if (wants_last_touch()) state.last_touch.assign(rows, 0);
  if (axes_.counter == "row") state.row_steps.assign(rows, 0);
  if (axes_.tracks_rows() && kind == GradKind::kRowSparse) state.last_steps.assign(rows, 0);
  return state;
}

RowState& RowOptimizer::state_of(const std::string& name, Parameter& p) {
  const auto found = states_.find(name);
  if (found != states_.end()) {
    ROWAN_CHECK(found->second.shape == p.shape(), "[", rule(), "] parameter '", name, "' was prepared with shape ",
                found->second.shape, " and now has ", p.shape());
    return found->second;
  }
  prepare(name, p);
  return states_.at(name);
}

void RowOptimizer::check_kind(const std::string& name, const Parameter& p) const {
  const bool dense = p.kind() == GradKind::kDense;
  ROWAN_CHECK(
      !sparse_only() || !dense, "[", rule(), "] parameter '", name, "' ", p.shape(),
      " is dense: every step gives every row a gradient, so there are no rows to leave alone. A token table is dense when ",
      "it is tied to the LM head, because softmax gives every row a gradient; use a dense rule such as adamw, or untie the head");
  ROWAN_CHECK(axes_.clip != "cowclip" || !dense, "[", rule(), "] parameter '", name,
              "' is dense: clip = \"cowclip\" needs to know how often a batch read each row; use clip = \"row_norm\"");
}

void RowOptimizer::settings_changed() {
  for (auto& [name, state] : states_) state = make_state(state.shape, state.kind, state.decays);
}

void RowOptimizer::visit_state(StateVisitor& v) {
  for (auto& [name, state] : states_) {
    visit_steps(v, name, state);
    visit_slots(v, name, state);
  }
}

void RowOptimizer::visit_slots(StateVisitor& v, const std::string& name, RowState& state) {
  const std::vector<Slot>& names = state.layout;
  for (size_t s = 0; s < names.size(); ++s) {
    if (names[s].per == Slot::Per::kElementByte) {
      v(name + "/" + names[s].name, state.bytes[s]);
      check_size(name, names[s].name.c_str(), state.bytes[s], state.shape.size());
      continue;
    }
    Tensor loaded = state.slots[s];
    v(name + "/" + names[s].name, loaded);
    if (!(loaded.shape() == state.slots[s].shape()))
      fail_data("[", rule(), "] state '", name, "/", names[s].name, "' has shape ", loaded.shape(), "; expected ",
                state.slots[s].shape());
    state.slots[s] = loaded;
  }
}

// The history is kept as learning rates: all else in it follows from the settings.
void RowOptimizer::visit_steps(StateVisitor& v, const std::string& name, RowState& state) {
  v(name + "/step", state.step);
  check_count(name + "/step", state.step, 0, kLargestStep);
  if (!state.row_steps.empty()) {
    v(name + "/row_steps", state.row_steps);
    check_size(name, "row_steps", state.row_steps, state.rows());
    for (const int32_t n : state.row_steps) check_count(name + "/row_steps", n, 0, state.step);
  }
  if (!state.last_touch.empty()) {
    v(name + "/last_touch", state.last_touch);
    check_size(name, "last_touch", state.last_touch, state.rows());
    for (const int32_t n : state.last_touch) check_count(name + "/last_touch", n, 0, state.step);
  }
  if (!state.tracks_rows()) return;
  std::vector<double> rates;
  for (const StepRecord& r : state.history) rates.push_back(r.scalars.lr);
  v(name + "/last_steps", state.last_steps);
  v(name + "/missed_lr", rates);
  if (RowCatchUp::jumps(*this)) visit_rows_ahead(v, name, state);
  if (!v.loading()) return;
  check_size(name, "last_steps", state.last_steps, state.rows());
  const int64_t base = state.step - std::ssize(rates);
  check_count(name + "/missed_lr", base, 0, state.step);
  for (const int32_t last : state.last_steps) check_count(name + "/last_steps", last, base, state.step);
  state.forget();
  for (size_t i = 0; i < rates.size(); ++i) state.remember(make_record(*this, state, base + static_cast<int64_t>(i) + 1, rates[i]));
}

int64_t RowOptimizer::state_bytes(const std::string& name) const {
  const auto found = states_.find(name);
  ROWAN_CHECK(found != states_.end(), "[", rule(), "] parameter '", name, "' has no state here");
  const RowState& state = found->second;
  int64_t bytes =
      static_cast<int64_t>((state.row_steps.size() + state.last_steps.size() + state.last_touch.size()) * sizeof(int32_t));
  for (const std::vector<uint8_t>& b : state.bytes) bytes += std::ssize(b);
  for (const Tensor& slot : state.slots) bytes += slot.size() * static_cast<int64_t>(sizeof(Real));
  return bytes;
}

// The parameter's own weights are saved as readers see them; with these, training goes on from where it stands.
void RowOptimizer::visit_rows_ahead(StateVisitor& v, const std::string& name, RowState& state) {
  Tensor base = state.ahead_base.empty() ? Tensor::zeros({0, state.width()}) : state.ahead_base;
  v(name + "/ahead_rows", state.ahead_rows);
  v(name + "/ahead_base", base);
  if (!v.loading()) return;
  const std::vector<int32_t>& rows = state.ahead_rows;
  if (!(base.shape() == (Shape{std::ssize(rows), state.width()})))
    fail_data("[", rule(), "] state '", name, "/ahead_base' has shape ", base.shape(), "; expected ",
              Shape{std::ssize(rows), state.width()});
  const bool increasing = std::adjacent_find(rows.begin(), rows.end(), std::greater_equal<>()) == rows.end();
  if (!increasing || (!rows.empty() && (rows.front() < 0 || rows.back() >= state.rows())))
    fail_data("[", rule(), "] state '", name, "/ahead_rows' is not a rising list of rows below ", state.rows());
  state.ahead_base = rows.empty() ? Tensor() : base;
}

UpdateReport RowOptimizer::last_update(const std::string& name) const {
  const auto found = states_.find(name);
  ROWAN_CHECK(found != states_.end(), "[", rule(), "] parameter '", name, "' has no state here");
  return found->second.report;
}

void RowOptimizer::begin_report(RowState& state) {
  state.report = {.rows = state.rows()};
}

void RowOptimizer::end_report(RowState& state, int64_t gradient_rows, double seconds) const {
  UpdateReport& r = state.report;
  const int64_t row = state.width() * static_cast<int64_t>(sizeof(Real));
  r.bytes = r.updated * (2 * row + state.bytes_a_row_moved()) + gradient_rows * row;
  // Where only decay is deferred, catching up moves the weights alone; the row's step is read and written in any case.
  const int64_t caught_up_row = 2 * row + (axes_.untouched == "exact" ? state.bytes_a_row_moved() : 0) + 8;
  r.bytes += std::exchange(state.caught_up_rows, 0) * caught_up_row;
  r.caught_up = std::exchange(state.caught_up, 0);
  r.seconds = seconds + std::exchange(state.caught_up_seconds, 0);
}

// A step of a parameter whose gradient is dense.
class RowOptimizer::DenseStep final : public PiecewiseStep {
 public:
  DenseStep(const RowOptimizer& rule, RowState& state, Parameter& p, const StepInfo& info)
      : rule_(rule), state_(state), parameter_(p), driver_(rule, counted(state), p, info) {}

  int64_t pieces() const override { return driver_.dense_pieces(); }
  void run(int64_t piece) const override { driver_.dense_piece(parameter_.grad(), piece); }
  void run_all() { driver_.dense(parameter_.grad()); }
  void finish(double seconds) override {
    parameter_.var.clear_grad();
    begin_report(state_);
    state_.report.touched = state_.report.updated = state_.rows();
    rule_.end_report(state_, state_.rows(), seconds);
  }

 private:
  static RowState& counted(RowState& state) {  // bias corrections are those of this step
    ++state.step;
    return state;
  }
  const RowOptimizer& rule_;
  RowState& state_;
  Parameter& parameter_;
  RowDriver driver_;
};

std::unique_ptr<PiecewiseStep> RowOptimizer::step_in_pieces(const std::string& name, Parameter& p, const StepInfo& info) {
  if (!p.has_grad() || p.kind() != GradKind::kDense || column_reduce() != ColumnReduce::kNone) return nullptr;
  return std::make_unique<DenseStep>(*this, state_of(name, p), p, info);
}

void RowOptimizer::step(const std::string& name, Parameter& p, const StepInfo& info) {
  if (!p.has_grad()) return;
  RowState& state = state_of(name, p);
  double seconds = 0;
  if (p.kind() == GradKind::kDense) {
    DenseStep step(*this, state, p, info);
    {
      const Stopwatch watch(seconds);
      step.run_all();
    }
    return step.finish(seconds);
  }
  begin_report(state);
  int64_t gradient_rows = 0;
  {
    const Stopwatch watch(seconds);
    gradient_rows = update_rows_of(state, p, info);
    p.var.clear_grad();
  }
  end_report(state, gradient_rows, seconds);
}

// Returns how many rows of gradient were read: one an occurrence, or one a touched row where these were joined before.
int64_t RowOptimizer::update_rows_of(RowState& state, Parameter& p, const StepInfo& info) {
  RowSparseGrad& grad = p.row_grad();
  const bool sequential = axes_.duplicates == "sequential";
  // With untouched = dense, rows without a gradient still move, unless a zero gradient and no decay leave them as they are.
  bool every_row = axes_.untouched == "dense" && !(idle_without_gradient() && weight_decay_of(p) == 0);
  const bool single = !every_row && grad.has_occurrences() && (sequential || !grad.coalesced());
  ROWAN_CHECK(single || !sequential, "[", rule(),
              "] duplicates = \"sequential\" needs the gradients of single occurrences, but they were joined before this parameter "
              "was prepared");
  if (!single) grad.coalesce();
  const std::vector<int32_t>& ids = single ? grad.occurrences().sorted.unique : grad.ids();
  const int64_t touched = std::ssize(ids);
  if (state.tracks_rows()) every_row = bring_up_to_date(state, p, ids);

  ++state.step;
  RowDriver driver(*this, state, p, info);
  if (every_row) {
    grad.coalesce();
    driver.sweep(grad);
  } else if (sequential) {
    driver.sequential(grad.occurrences());
  } else if (single) {
    driver.fused(grad.occurrences());
  } else {
    driver.touched(grad);
  }
  const bool joined = !single || every_row;  // by now, the gradient has one row an id
  state.report.touched = touched;
  state.report.updated = every_row ? state.rows() : touched;
  state.report.longest_run = joined ? longest(grad.counts()) : longest_run(grad.occurrences());
  if (state.tracks_rows()) remember_step(state, ids, every_row, lr_ * info.lr_factor);
  return joined ? touched : grad.occurrences().count();
}

// Rows about to be updated stand at the step before. True when so many are that the whole table had better be swept.
bool RowOptimizer::bring_up_to_date(RowState& state, Parameter& p, std::span<const int32_t> ids) const {
  RowCatchUp behind(*this, state, p);
  behind.take_back();
  const bool most = axes_.untouched == "exact" && !RowCatchUp::jumps(*this) &&
                    static_cast<double>(ids.size()) > axes_.sweep_above * static_cast<double>(state.rows());
  if (most || state.history.size() >= kLongestHistory) {
    behind.all();
  } else {
    behind.rows(ids);
  }
  return most;
}

void RowOptimizer::remember_step(RowState& state, std::span<const int32_t> ids, bool every_row, double lr) const {
  const auto now = static_cast<int32_t>(state.step);
  if (every_row) {  // which had caught up before: nobody lags behind now
    std::fill(state.last_steps.begin(), state.last_steps.end(), now);
    return;
  }
  state.remember(make_record(*this, state, state.step, lr));
  for (int32_t id : ids) state.last_steps[static_cast<size_t>(id)] = now;
}

void RowOptimizer::catch_up(const std::string& name, Parameter& p, std::span<const int32_t> ids) {
  RowState& state = state_of(name, p);
  if (!state.tracks_rows()) return;
  for (int32_t id : ids)
    ROWAN_CHECK(id >= 0 && id < state.rows(), "[", rule(), "] catch up row ", id, " of '", name, "', which has ", state.rows(),
                " rows");
  if (state.history.empty()) return;
  const Stopwatch watch(state.caught_up_seconds);
  RowCatchUp behind(*this, state, p);
  behind.take_back();
  behind.rows(sort_ids(ids).unique);
}

void RowOptimizer::flush(const std::string& name, Parameter& p) {
  RowState& state = state_of(name, p);
  if (!state.tracks_rows()) return;
  const Stopwatch watch(state.caught_up_seconds);
  RowCatchUp behind(*this, state, p);
  RowCatchUp::jumps(*this) ? behind.read_ahead() : behind.all();
}

}  // namespace rowan
