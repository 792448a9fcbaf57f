#include "core/variable.h"

#include <algorithm>
#include <atomic>
#include <queue>
#include <unordered_set>

#include "core/kernels/elementwise.h"
#include "core/parallel.h"
#include "core/tape_observer.h"

namespace rowan {
namespace {

// Creation numbers only order the nodes of one graph; they never reach a result.
std::atomic<uint64_t> next_number{1};
thread_local bool tape_off = false;
thread_local TapeObserver* observer = nullptr;

void add_in_place(Tensor& a, const Tensor& b) {
  Real* out = a.data();
  const Real* in = b.data();
  parallel_ranges(a.size(), kElementwiseGrain,
                  [&](int64_t begin, int64_t end) { accumulate(in + begin, out + begin, end - begin); });
}

}  // namespace

struct Variable::Node {
  const char* op = "constant";
  Shape shape;  // of the value
  bool needs_grad = false;
  bool is_leaf = true;
  bool spent = false;  // backward() ran through it
  GradKind kind = GradKind::kDense;
  uint64_t number = next_number.fetch_add(1, std::memory_order_relaxed);
  Tensor grad;
  RowSparseGrad rows;
  std::vector<Variable> inputs;
  Backward backward;

  Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // A long chain that is dropped must not recurse through its destructors: inputs owned by nobody else are taken apart here.
  ~Node() {
    std::vector<Variable> doomed = std::move(inputs);
    while (!doomed.empty()) {
      const std::shared_ptr<Node> node = std::move(doomed.back().node_);
      doomed.pop_back();
      if (node == nullptr || node.use_count() > 1) continue;
      for (Variable& v : node->inputs) doomed.push_back(std::move(v));
      node->inputs.clear();
      node->backward = nullptr;
    }
  }
};

Variable::Variable(const Tensor& value) : node_(std::make_shared<Node>()), value_(value) {
  node_->shape = value.shape();
}

Variable Variable::leaf(const Tensor& value, GradKind kind) {
  Variable v(value);
  v.node_->op = "leaf";
  v.node_->needs_grad = true;
  v.node_->kind = kind;
  if (kind == GradKind::kRowSparse) {
    ROWAN_CHECK(value.shape().rank() == 2, "[variable] a row-sparse gradient needs a table (V,D), not ", value.shape());
    v.node_->rows = RowSparseGrad(value.shape()[0], value.shape()[1]);
  }
  return v;
}

const Tensor& Variable::value() const {
  ROWAN_ASSERT(node_ != nullptr);
  return value_;
}
Tensor& Variable::value() {
  ROWAN_ASSERT(node_ != nullptr);
  return value_;
}
const Shape& Variable::shape() const {
  ROWAN_ASSERT(node_ != nullptr);
  return node_->shape;
}
bool Variable::needs_grad() const {
  return node_ != nullptr && node_->needs_grad;
}
GradKind Variable::grad_kind() const {
  return node_->kind;
}
const char* Variable::op() const {
  return node_->op;
}
Tensor& Variable::grad() {
  return node_->grad;
}
RowSparseGrad& Variable::row_grad() {
  return node_->rows;
}
void Variable::clear_grad() {
  node_->grad = Tensor();
  node_->rows.clear();
}

bool InputGrads::wants(size_t i) const {
  return inputs_[i].needs_grad();
}
bool InputGrads::row_sparse(size_t i) const {
  return inputs_[i].node_->kind == GradKind::kRowSparse;
}

InputGrads::Target InputGrads::target(size_t i) {
  Variable::Node& node = *inputs_[i].node_;
  ROWAN_ASSERT(node.needs_grad && node.kind == GradKind::kDense);
  const bool fresh = node.grad.empty();
  if (fresh)
    node.grad = Tensor(node.shape);
  else if (node.grad.shared())
    node.grad = node.grad.clone();  // add() kept somebody else's handle
  return {node.grad, fresh};
}

Tensor& InputGrads::dense(size_t i) {
  const Target t = target(i);
  if (t.fresh) t.tensor.fill(0);
  return t.tensor;
}

void InputGrads::add(size_t i, const Tensor& t) {
  Variable::Node& node = *inputs_[i].node_;
  ROWAN_CHECK(t.size() == node.shape.size(), "[variable] gradient of shape ", t.shape(), " for a value of shape ", node.shape);
  // A leaf's gradient is scaled and read by the optimizer in place: it must not share a buffer that another input was given.
  if (node.grad.empty())
    node.grad = (node.is_leaf && t.shared() ? t.clone() : t).reshape(node.shape);
  else
    add_in_place(dense(i), t);
}

RowSparseGrad& InputGrads::rows(size_t i) {
  ROWAN_ASSERT(row_sparse(i));
  return inputs_[i].node_->rows;
}

Variable record(const char* op, const Tensor& value, const std::vector<Variable>& inputs, Backward backward) {
  if (observer != nullptr) observer->op_done({op, false, value.shape(), inputs});
  Variable v(value);
  const bool wanted = std::any_of(inputs.begin(), inputs.end(), [](const Variable& x) { return x.needs_grad(); });
  if (tape_off || !wanted) return v;
  v.node_->op = op;
  v.node_->needs_grad = true;
  v.node_->is_leaf = false;
  v.node_->inputs = inputs;
  for (Variable& input : v.node_->inputs) input.value_ = Tensor();
  v.node_->backward = std::move(backward);
  return v;
}

void backward(const Variable& loss) {
  ROWAN_CHECK(!loss.empty() && loss.value().size() == 1, "[backward] the loss must have one element");
  backward(loss, Tensor::full(loss.shape(), 1));
}

void backward(const Variable& y, const Tensor& dy) {
  ROWAN_CHECK(y.needs_grad(), "[backward] the value does not depend on anything that wants a gradient");
  ROWAN_CHECK(dy.shape() == y.shape(), "[backward] the gradient is ", dy.shape(), " but the value is ", y.shape());
  using NodePointer = std::shared_ptr<Variable::Node>;
  const auto older = [](const NodePointer& a, const NodePointer& b) { return a->number < b->number; };
  std::priority_queue<NodePointer, std::vector<NodePointer>, decltype(older)> ready(older);
  std::unordered_set<const Variable::Node*> seen;
  y.node_->grad = dy;
  ready.push(y.node_);
  while (!ready.empty()) {
    const NodePointer node = ready.top();
    ready.pop();
    if (node->is_leaf) continue;
    ROWAN_CHECK(!node->spent, "[backward] the graph was used already: '", node->op, "' has given its buffers back");
    const Tensor dnode = std::move(node->grad);
    node->grad = Tensor();
    InputGrads in(node->inputs);
    if (!dnode.empty()) node->backward(dnode, in);
    if (observer != nullptr) observer->op_done({node->op, true, node->shape, node->inputs});
    node->spent = true;
    for (const Variable& input : node->inputs)
      if (input.needs_grad() && seen.insert(input.node_.get()).second) ready.push(input.node_);
    node->backward = nullptr;
    node->inputs.clear();
  }
}

ObserveTape::ObserveTape(TapeObserver& o) : previous_(observer) {
  observer = &o;
}
ObserveTape::~ObserveTape() {
  observer = previous_;
}

NoGrad::NoGrad() : previous_(tape_off) {
  tape_off = true;
}
NoGrad::~NoGrad() {
  tape_off = previous_;
}
bool grad_enabled() {
  return !tape_off;
}

}  // namespace rowan
