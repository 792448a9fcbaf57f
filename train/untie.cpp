#include "train/untie.h"

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "core/error.h"

namespace rowan {
namespace {

const std::string kTable = "embed.tokens.weight", kHead = "head.weight";

// Optimizer state between two sets.
class HeldState final : public StateVisitor {
 public:
  void give_out() { loading_ = true; }
  bool loading() const override { return loading_; }
  void operator()(const std::string& name, Tensor& value) override {
    if (loading_ && find(name) == nullptr && name.ends_with("/ahead_base")) return;  // of no rows
    pass(name, value);
    if (loading_) value = value.clone();  // table and head may come from the same entry
  }
  void operator()(const std::string& name, int64_t& value) override { pass(name, value); }
  void operator()(const std::string& name, double& value) override { pass(name, value); }
  void operator()(const std::string& name, std::vector<int32_t>& value) override {
    if (!loading_ || find(name) != nullptr) return pass(name, value);
    // A dense parameter has no account of the steps that its rows stand at: they all stand at the last one, and none is ahead.
    if (name.ends_with("/ahead_rows")) return value.clear();
    ROWAN_ASSERT(name.ends_with("/last_steps"));
    const auto* step = find(name.substr(0, name.rfind('/')) + "/step");
    ROWAN_ASSERT(step != nullptr);
    value.assign(value.size(), static_cast<int32_t>(std::get<int64_t>(*step)));
  }
  void operator()(const std::string& name, std::vector<int64_t>& value) override { pass(name, value); }
  void operator()(const std::string& name, std::vector<double>& value) override {
    if (!loading_ || find(name) != nullptr) return pass(name, value);
    ROWAN_ASSERT(name.ends_with("/missed_lr"));
    value.clear();
  }
  void operator()(const std::string& name, std::vector<uint8_t>& value) override { pass(name, value); }

 private:
  using Value =
      std::variant<Tensor, int64_t, double, std::vector<int32_t>, std::vector<int64_t>, std::vector<double>, std::vector<uint8_t>>;

  template <class T>
  void pass(const std::string& name, T& value) {
    if (!loading_) {
      values_.emplace(name, value);
      return;
    }
    const Value* held = find(name);
    ROWAN_CHECK(held != nullptr && std::holds_alternative<T>(*held),
                "[train] the head can't be untied: embed.tokens.weight has no ", "optimizer state for ", name);
    value = std::get<T>(*held);
  }

  const Value* find(const std::string& name) const {
    if (const auto it = values_.find(name); it != values_.end()) return &it->second;
    if (!name.starts_with(kHead + "/")) return nullptr;
    const auto it = values_.find(kTable + name.substr(kHead.size()));
    return it == values_.end() ? nullptr : &it->second;
  }

  bool loading_ = false;
  std::map<std::string, Value> values_;
};

}  // namespace

void move_weights(Gpt& from, Gpt& to) {
  std::map<std::string, Tensor> weights;
  for_each_parameter(from, [&](const std::string& name, Parameter& p) { weights[name] = p.value(); });
  for_each_parameter(to, [&](const std::string& name, Parameter& p) {
    const auto it = weights.find(name);
    ROWAN_ASSERT(it != weights.end() || name == kHead);
    p.value() = it != weights.end() ? it->second : weights.at(kTable).clone();
  });
}

void copy_optimizer_state(OptimizerSet& from, OptimizerSet& to) {
  HeldState state;
  from.visit_state(state);
  state.give_out();
  to.visit_state(state);
}

}  // namespace rowan
