// The fixture of the contract tests: one registered rule, whatever it is.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <numbers>

#include "optim/row_optimizer.h"
#include "tests/support/compare.h"
#include "tests/support/optim.h"
#include "tests/support/random.h"

namespace rowan::test {

class OptimizerContract : public ::testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Optimizer> make(double lr = 0.01, const FieldValues& more = {}) const {
    FieldValues fields = more;
    fields["lr"] = lr;
    return make_rule(GetParam(), fields);
  }
  bool accepts(GradKind kind) const {
    Parameter p(Tensor::zeros({3, 2}), kind);
    try {
      make()->prepare("p", p);
      return true;
    } catch (const Error&) {
      return false;
    }
  }
  GradKind some_kind() const { return accepts(GradKind::kDense) ? GradKind::kDense : GradKind::kRowSparse; }
  // With every number that the rule lets be another one.
  std::unique_ptr<Optimizer> make_other() const {
    std::unique_ptr<Optimizer> other = make(0.7);
    struct Numbers final : FieldVisitor {
      std::map<std::string, std::pair<double, Limits>> found;
      void operator()(const char* name, double& value, const char*, const Limits& limits) override {
        found[name] = {value, limits};
      }
      void operator()(const char*, int64_t&, const char*, const Limits&) override {}
      void operator()(const char*, bool&, const char*) override {}
      void operator()(const char*, std::string&, const char*, const Limits&) override {}
      void operator()(const char*, std::vector<std::string>&, const char*) override {}
    } numbers;
    other->visit(numbers);
    size_t changed = 0;
    for (const auto& [name, number] : numbers.found) {
      const auto& [value, limits] = number;
      const double another = std::isfinite(limits.high) ? (value + limits.low) / 2 + 0.01 : 2 * value + 0.01;
      SetFields(*other, {{name, another}});
      try {
        other->validate();
        ++changed;
      } catch (const Error&) {  // such as a decay where there is none
        SetFields(*other, {{name, value}});
      }
    }
    EXPECT_GT(changed, 0u);
    return other;
  }
  // With the axis `untouched` set to frozen where the rule has it.
  std::unique_ptr<Optimizer> make_frozen(double lr = 0.01, FieldValues more = {}) const {
    if (dynamic_cast<RowOptimizer*>(make().get()) != nullptr) more["untouched"] = std::string("frozen");
    return make(lr, more);
  }
};

inline void give(Parameter& p, const Tensor& grad) {
  if (p.kind() == GradKind::kDense) return give_dense_grad(p, grad);
  std::vector<int32_t> ids(static_cast<size_t>(p.shape()[0]));
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i);
  give_row_grad(p, ids, grad);
}

inline double cosine(int64_t step, int64_t steps) {
  return 0.5 * (1 + std::cos(std::numbers::pi * static_cast<double>(step) / static_cast<double>(steps)));
}

inline Tensor rows_of(const std::vector<Real>& values, int64_t width) {  // row i holds values[i]
  Tensor t({static_cast<int64_t>(values.size()), width});
  for (size_t i = 0; i < values.size(); ++i) std::fill_n(t.data() + static_cast<int64_t>(i) * width, width, values[i]);
  return t;
}

inline std::vector<int32_t> plain(const Ids& ids) {
  return {ids.values().begin(), ids.values().end()};
}

inline std::vector<Tensor> state_tensors(Optimizer& rule) {
  MemoryState state;
  rule.visit_state(state);
  std::vector<Tensor> out;
  for (const auto& entry : state.values())
    if (const Tensor* t = std::get_if<Tensor>(&entry.second)) out.push_back(*t);
  return out;
}

}  // namespace rowan::test
