#include "train/touch_log.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "optim/row_optimizer.h"

namespace rowan {
namespace {

constexpr const char* kTable = "embed.tokens.weight";

struct Touches {
  int64_t count = 0;
  double moved = 0;
};

}  // namespace

TouchLog::TouchLog(TrainSession& session, const TokenCounts& counts, int64_t interval)
    : session_(session), counts_(counts), interval_(interval) {}

// The last step too: a run shorter than the interval has something to tell.
bool TouchLog::logs(int64_t step) const {
  return step % interval_ == 0 || step == session_.config().train.steps;
}

void TouchLog::before_update(int64_t step, const std::vector<Batch>& batches) {
  if (!logs(step)) return;
  ids_.clear();
  for (const Batch& batch : batches) ids_.insert(ids_.end(), batch.inputs.values().begin(), batch.inputs.values().end());
  std::sort(ids_.begin(), ids_.end());
  ids_.erase(std::unique(ids_.begin(), ids_.end()), ids_.end());
  const Tensor& table = session_.token_table();
  before_.clear();
  for (int32_t id : ids_) before_.insert(before_.end(), table.row(id).begin(), table.row(id).end());
}

void TouchLog::after_update(int64_t step, double lr_factor) {
  if (!logs(step)) return;
  Optimizer& rule = session_.optimizers().optimizer_of(kTable);
  const double lr = rule.lr() * lr_factor;
  const Tensor& table = session_.token_table();
  std::map<int, Touches> by_count;
  const Real* before = before_.data();
  for (int32_t id : ids_) {
    double squares = 0;
    for (Real now : table.row(id)) {
      const double moved = static_cast<double>(now) - static_cast<double>(*before++);
      squares += moved * moved;
    }
    Touches& t = by_count[counts_.input_bucket(id)];
    ++t.count;
    t.moved += lr > 0 ? std::sqrt(squares) / lr : 0;
  }
  nlohmann::ordered_json buckets = nlohmann::ordered_json::object();
  for (const auto& [bucket, t] : by_count) buckets[std::to_string(bucket)] = {{"touches", t.count}, {"moved", t.moved}};
  nlohmann::ordered_json event{{"event", "touch"}, {"step", step}, {"lr", lr}};
  if (const auto* row_rule = dynamic_cast<const RowOptimizer*>(&rule)) {
    const UpdateReport& report = row_rule->last_update(kTable);
    event["bytes"] = report.bytes;
    event["seconds"] = report.seconds;
  }
  event["by_count"] = std::move(buckets);
  line_ = event.dump();
  line_step_ = step;
}

std::string TouchLog::take_line(int64_t step) {
  return line_step_ == step ? std::exchange(line_, {}) : std::string();
}

}  // namespace rowan
