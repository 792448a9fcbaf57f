#include "core/tape_observer.h"

#include <gmock/gmock.h>

#include <string>

#include "core/ops/add.h"
#include "core/ops/linear.h"
#include "core/ops/multiply.h"
#include "core/ops/recompute.h"

namespace rowan {
namespace {

struct Log final : TapeObserver {
  void op_done(const OpDone& done) override {
    seen.push_back(join_text(done.backward ? "d" : "", done.op, done.shape, done.inputs.size()));
  }
  std::vector<std::string> seen;
};

Variable leaf() {
  return Variable::leaf(Tensor::full({2, 3}, 1));
}

TEST(TapeObserver, sees_ops_forward_and_then_backward_with_shapes_and_inputs) {
  Log log;
  {
    const ObserveTape scope(log);
    const Variable a = leaf();
    backward(multiply(add(a, a), a), Tensor::full({2, 3}, 1));
  }
  EXPECT_THAT(log.seen, ::testing::ElementsAre("add(2, 3)2", "multiply(2, 3)2", "dmultiply(2, 3)2", "dadd(2, 3)2"));
  const Variable b = leaf();
  add(b, b);
  EXPECT_EQ(log.seen.size(), 4u);  // the scope has ended
}

// The forward pass of recomputed blocks: time that nobody is told of would be the next op's.
TEST(TapeObserver, sees_ops_that_nothing_wants_the_gradient_of) {
  Log log;
  const ObserveTape scope(log);
  const NoGrad no_grad;
  const Variable w = Variable::leaf(Tensor::full({4, 3}, 1)), y = linear(leaf(), w, {}, Activation::kGelu);
  EXPECT_FALSE(y.needs_grad());
  add(y, y);
  EXPECT_THAT(log.seen, ::testing::ElementsAre("linear(2, 4)3", "add(2, 4)2"));
}

TEST(TapeObserver, an_inner_one_hides_the_outer_one_while_it_lives) {
  Log outer, inner;
  const Variable a = leaf();
  const ObserveTape first(outer);
  {
    const ObserveTape second(inner);
    add(a, a);
  }
  add(a, a);
  EXPECT_EQ(outer.seen.size(), 1u);
  EXPECT_EQ(inner.seen.size(), 1u);
}

TEST(TapeObserver, recomputed_ops_are_seen_before_the_op_that_holds_them_ends) {
  Log log;
  const ObserveTape scope(log);
  backward(recompute(leaf(), [](const Variable& x) { return add(x, x); }), Tensor::full({2, 3}, 1));
  EXPECT_THAT(log.seen, ::testing::ElementsAre("add(2, 3)2", "recompute(2, 3)1", "add(2, 3)2", "dadd(2, 3)2", "drecompute(2, 3)1"));
}

}  // namespace
}  // namespace rowan
