// Variable: a tensor with a place on the tape. record() puts an op's result there; backward() runs the ops in reverse.
//
// The tape is the set of nodes that a loss can reach, run in falling creation order; there is no recursion anywhere, neither in
// backward() nor when a graph is dropped. A value belongs to the Variables that name it, not to the tape: what an op's backward
// needs is exactly what its closure captures, all else goes as soon as nobody names it, and what was captured as backward() goes.
//
//   Variable square(const Variable& x) {                       // y = x^2, any shape; dx += 2 x dy
//     Tensor y = ...;
//     return record("square", y, {x}, [x = x.value()](const Tensor& dy, InputGrads& in) {
//       if (in.wants(0)) { Tensor& dx = in.dense(0); ... dx += ... }
//     });
//   }
//
// Not here: second derivatives, in-place ops on recorded values, more than one device.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <vector>

#include "core/row_sparse_grad.h"
#include "core/tensor.h"

namespace rowan {

enum class GradKind { kDense, kRowSparse };  // declared per parameter

class InputGrads;
using Backward = std::function<void(const Tensor& dy, InputGrads& in)>;

class Variable {
 public:
  struct Node;

  Variable() = default;                                                         // no node; empty() is true
  explicit Variable(const Tensor& value);                                       // a constant: no gradient flows into it
  static Variable leaf(const Tensor& value, GradKind kind = GradKind::kDense);  // wants a gradient and keeps it

  bool empty() const { return node_ == nullptr; }
  const Tensor& value() const;
  Tensor& value();  // of this Variable: a copy made before keeps the tensor it had
  const Shape& shape() const;
  bool needs_grad() const;
  GradKind grad_kind() const;
  const char* op() const;  // the op that made it; "leaf" or "constant" without one

  Tensor& grad();             // of a dense leaf: empty() until something flowed into it
  RowSparseGrad& row_grad();  // of a row-sparse leaf
  void clear_grad();

 private:
  friend Variable record(const char*, const Tensor&, const std::vector<Variable>&, Backward);
  friend void backward(const Variable&, const Tensor&);
  friend class InputGrads;
  std::shared_ptr<Node> node_;
  Tensor value_;  // empty in the tape's own copies
};

// The gradients of an op's inputs, seen from its backward. Every write is +=.
class InputGrads {
 public:
  explicit InputGrads(std::vector<Variable>& inputs) : inputs_(inputs) {}

  bool wants(size_t i) const;       // false for constants and empty inputs: skip the work
  bool row_sparse(size_t i) const;  // use rows(i), not dense(i)

  Tensor& dense(size_t i);  // to be added to; zeros when nothing came before

  // For a matrix product that can write or add at no cost: uninitialized and fresh when nothing came before, so that the
  // kernel stores with beta = 0 and nobody clears the buffer first. The kernel must write every element when fresh.
  struct Target {
    Tensor& tensor;
    bool fresh;
  };
  Target target(size_t i);

  void add(size_t i, const Tensor& t);  // += t; keeps the handle instead of a copy when nothing came before
  RowSparseGrad& rows(size_t i);

 private:
  std::vector<Variable>& inputs_;
};

// An op's result. A plain constant under NoGrad or when no input wants a gradient; the closure is then dropped.
Variable record(const char* op, const Tensor& value, const std::vector<Variable>& inputs, Backward backward);

// Runs the tape from a loss of one element, with d loss = 1. Leaves keep their gradients, added to what they had; all else is
// freed: a second backward() through the same graph is an error.
void backward(const Variable& loss);
// The same from a value of any shape and the gradient of the loss with respect to it.
void backward(const Variable& y, const Tensor& dy);

// No tape on this thread while it lives.
class NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool previous_;
};
bool grad_enabled();

}  // namespace rowan
