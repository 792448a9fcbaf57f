// gradcheck: an op's backward against central differences of its forward, for every element of every input.
//
//   EXPECT_TRUE(gradcheck([](const std::vector<Variable>& x) { return add(x[0], x[1]); }, {random_tensor({2, 3}, 1), ...}));
//
// The output, of any shape, is weighed with fixed random numbers into a scalar. The difference quotient is of fourth order:
//   f'(x) = (8 (f(x+h) - f(x-h)) - (f(x+2h) - f(x-2h))) / 12h + O(h^4)
// An element is right when it is off by at most `tolerance` times its own size, or times `floor` of the largest gradient of that
// input if it is smaller than that. With Real = double the defaults are strict; with float they catch a wrong formula, no more.
// Gradients are then accumulated a second time, which must double them. The op must be smooth within 2h of the inputs.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "core/ops/dot.h"
#include "tests/support/compare.h"
#include "tests/support/random.h"

namespace rowan::test {

struct GradcheckOptions {
  std::vector<GradKind> kinds = {};  // per input; dense where the list ends
  std::vector<bool> constant = {};   // per input: true for one that wants no gradient
  double step = kRealIsDouble ? 1e-3 : 2e-2;
  double tolerance = kRealIsDouble ? 1e-8 : 1e-2;
  double floor = kRealIsDouble ? 1e-3 : 0.1;
};

using OpUnderTest = std::function<Variable(const std::vector<Variable>&)>;

namespace detail {

class Gradcheck {
 public:
  Gradcheck(OpUnderTest op, const std::vector<Tensor>& inputs, GradcheckOptions options)
      : op_(std::move(op)), options_(std::move(options)) {
    options_.kinds.resize(inputs.size(), GradKind::kDense);
    options_.constant.resize(inputs.size(), false);
    for (size_t i = 0; i < inputs.size(); ++i) {
      inputs_.push_back(inputs[i].clone());  // ours: they are perturbed in place
      variables_.push_back(options_.constant[i] ? Variable(inputs_[i]) : Variable::leaf(inputs_[i], options_.kinds[i]));
    }
  }

  ::testing::AssertionResult run() {
    weights_ = random_tensor(op_(variables_).shape(), 0x9e37);
    const std::vector<Tensor> once = gradients();
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (!options_.constant[i])
        if (const auto result = compare(i, once[i]); !result) return result;
    const std::vector<Tensor> twice = gradients();
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (options_.constant[i]) continue;
      std::vector<double> doubled = as_doubles(once[i]);
      for (double& g : doubled) g *= 2;
      if (const auto result = is_close(twice[i], doubled, kRealIsDouble ? 1e-12 : 1e-5); !result)
        return ::testing::AssertionFailure() << "gradient of input " << i
                                             << " is not added to what was there: " << result.message();
    }
    return ::testing::AssertionSuccess();
  }

 private:
  // Runs backward once and returns what the leaves hold, row-sparse ones as a dense table.
  std::vector<Tensor> gradients() {
    backward(dot(op_(variables_), weights_));
    std::vector<Tensor> out;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      Tensor g = Tensor::zeros(inputs_[i].shape());
      if (options_.constant[i]) {
      } else if (options_.kinds[i] == GradKind::kRowSparse) {
        variables_[i].row_grad().coalesce();
        if (!variables_[i].row_grad().empty()) variables_[i].row_grad().add_to(g);
      } else if (!variables_[i].grad().empty()) {
        g = variables_[i].grad().clone();
      }
      out.push_back(g);
    }
    return out;
  }

  Tensor output() {
    const NoGrad off;
    return op_(variables_).value().clone();
  }

  // Differences are taken per output element, before they are summed: what an input does not reach then adds no rounding.
  double slope(Real& x) {
    const Real middle = x;
    const Real near_up = static_cast<Real>(middle + options_.step), near_down = static_cast<Real>(middle - options_.step);
    const Real far_up = static_cast<Real>(middle + 2 * options_.step), far_down = static_cast<Real>(middle - 2 * options_.step);
    const auto at = [&](Real value) {
      x = value;
      return output();
    };
    const Tensor a = at(near_up), b = at(near_down), c = at(far_up), d = at(far_down);
    x = middle;
    double near = 0, far = 0;
    for (int64_t i = 0; i < weights_.size(); ++i) {
      const double w = static_cast<double>(weights_.data()[i]);
      near += w * (static_cast<double>(a.data()[i]) - static_cast<double>(b.data()[i]));
      far += w * (static_cast<double>(c.data()[i]) - static_cast<double>(d.data()[i]));
    }
    // The steps as they are after rounding to Real.
    near /= static_cast<double>(near_up) - static_cast<double>(near_down);
    far /= static_cast<double>(far_up) - static_cast<double>(far_down);
    return (4 * near - far) / 3;
  }

  ::testing::AssertionResult compare(size_t input, const Tensor& analytic) {
    std::vector<double> numeric;
    double largest = 0;
    for (Real& x : inputs_[input].values()) {
      numeric.push_back(slope(x));
      largest = std::max(largest, std::abs(numeric.back()));
    }
    size_t worst = 0;
    double worst_excess = -1;
    for (size_t k = 0; k < numeric.size(); ++k) {
      const double error = std::abs(static_cast<double>(analytic.data()[k]) - numeric[k]);
      // The smallest normal number stands for an input without any influence, whose gradient must then be zero.
      const double scale = std::max({std::abs(numeric[k]), options_.floor * largest, 1e-300});
      const double excess = std::isfinite(error) ? error / scale : INFINITY;
      if (excess > worst_excess) {
        worst = k;
        worst_excess = excess;
      }
    }
    if (worst_excess <= options_.tolerance) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << "gradient of input " << input << " " << inputs_[input].shape() << ", worst at element "
                                         << worst << ": backward gives " << analytic.data()[worst] << ", central differences give "
                                         << numeric[worst] << "; relative error " << worst_excess << ", allowed "
                                         << options_.tolerance << "; the largest gradient of that input is " << largest;
  }

  OpUnderTest op_;
  GradcheckOptions options_;
  std::vector<Tensor> inputs_;
  std::vector<Variable> variables_;
  Tensor weights_;
};

}  // namespace detail

[[nodiscard]] inline ::testing::AssertionResult gradcheck(const OpUnderTest& op, const std::vector<Tensor>& inputs,
                                                          const GradcheckOptions& options = {}) {
  return detail::Gradcheck(op, inputs, options).run();
}

}  // namespace rowan::test
