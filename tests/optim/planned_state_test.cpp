#include "optim/planned_state.h"

#include <gmock/gmock.h>

#include "core/error.h"

namespace rowan {
namespace {

bool takes(Optimizer& rule, Parameter& p) {
  try {
    rule.prepare("p", p);
    return true;
  } catch (const Error&) {  // a rule for rows only refuses a dense tensor
    return false;
  }
}

TEST(PlannedState, is_what_every_rule_then_makes) {
  int compared = 0;
  for (const std::string& name : optimizer_rules()) {
    for (const Shape& shape : {Shape{7, 3}, Shape{4, 600}, Shape{5}}) {
      for (const GradKind kind : {GradKind::kDense, GradKind::kRowSparse}) {
        if (kind == GradKind::kRowSparse && shape.rank() != 2) continue;
        const auto rule = make_optimizer(name);
        Parameter p(Tensor::zeros(shape), kind);
        if (!takes(*rule, p)) continue;
        EXPECT_EQ(planned_state_bytes(*rule, shape, kind), rule->state_bytes("p")) << name << " " << shape;
        ++compared;
      }
    }
  }
  EXPECT_GE(compared, 10);
}

struct Unknown final : Optimizer {
  void prepare(const std::string&, Parameter&) override {}
  void visit_state(StateVisitor&) override {}
  int64_t state_bytes(const std::string&) const override { return 0; }
  void step(const std::string&, Parameter&, const StepInfo&) override {}
};

TEST(PlannedState, is_not_guessed_for_a_rule_that_does_not_say) {
  EXPECT_THROW(planned_state_bytes(Unknown(), Shape{2, 2}, GradKind::kDense), Error);
}

}  // namespace
}  // namespace rowan
