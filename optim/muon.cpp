// muon: momentum whose update is made orthogonal, so that all directions of a matrix move by the same amount.
//
//   b = momentum b + (1 - momentum) g          u = nesterov ? momentum b + (1 - momentum) g : b
//   w = (1 - lr weight_decay) w                w -= lr * scale * newton_schulz(u)            optim/newton_schulz.h
//
//   scale "shape":  sqrt(max(1, rows / columns)), as in the authors' code (Jordan et al., "Muon: an optimizer for hidden layers in
//                   neural networks", 2024)
//   scale "rms":    0.2 sqrt(max(rows, columns)): updates then have the size of AdamW's, whose lr and weight_decay can be used (Liu
//   et
//                   al., "Muon is scalable for LLM training", 2025)
//
// State: b (momentum_buffer) per element. A step costs about ns_steps * 4 * rows * columns * min(rows, columns) FLOPs, whatever the
// batch is.
//
// For dense matrices only, unlike every other rule. A row's update depends on all other rows, so there is no update of the touched
// rows alone: row-sparse gradients are refused. A vector has no directions to balance. Embedding tables and the head are matrices
// by shape, but their rows belong to tokens that are read at very different rates; the authors leave them to AdamW, and so does the
// config reader, which refuses them by name. attn.qkv.weight is one matrix here, its three parts made orthogonal together.
#include <algorithm>
#include <cmath>
#include <map>

#include "core/kernels/elementwise.h"
#include "core/kernels/vectorize.h"
#include "core/parallel.h"
#include "optim/newton_schulz.h"
#include "optim/optimizer.h"

namespace rowan {
namespace {

// b = b + (1 - momentum) (scale g - b); u as above.
ROWAN_VECTORIZED void momentum_loop(const Real* __restrict g, Real* __restrict b, Real* __restrict u, int64_t n, Real g_scale,
                                    Real momentum, Real rest, bool nesterov) {
  for (int64_t j = 0; j < n; ++j) {
    const Real gj = g_scale * g[j];
    b[j] = momentum * b[j] + rest * gj;
    u[j] = nesterov ? momentum * b[j] + rest * gj : b[j];
  }
}

ROWAN_VECTORIZED void update_loop(const Real* __restrict u, Real* __restrict w, int64_t n, Real shrink, Real size) {
  for (int64_t j = 0; j < n; ++j) w[j] = shrink * w[j] - size * u[j];
}

class Muon final : public Optimizer {
 public:
  Muon() { lr_ = 0.02; }

  void visit(FieldVisitor& v) override {
    Optimizer::visit(v);
    v("momentum", momentum_, "decay of the mean of gradients", from_below(0, 1));
    v("nesterov", nesterov_, "the gradient counts once more, as if momentum were a step ahead");
    v("ns_steps", ns_steps_, "Newton-Schulz iterations", between(1, 100));
    v("scale", scale_, "size of an update: sqrt(max(1, rows / columns)) (shape), or that of AdamW's, with its lr (rms)",
      one_of({"shape", "rms"}));
  }
  bool whole_matrix() const override { return true; }
  std::optional<int64_t> planned_state_bytes(const Shape& shape, GradKind) const override {
    return shape.size() * static_cast<int64_t>(sizeof(Real));
  }
  double update_flops(const Shape& shape) const override { return newton_schulz_flops(shape, ns_steps_); }

  int64_t update_scratch_bytes(const Shape& shape) const override {
    const int64_t k = std::min(shape[0], shape[1]);
    return 2 * (shape.size() + k * k) * static_cast<int64_t>(sizeof(Real));
  }

  void prepare(const std::string& name, Parameter& p) override { state_of(name, p); }

  void visit_state(StateVisitor& v) override {
    for (auto& [name, state] : states_) {
      v(name + "/step", state.step);
      Tensor loaded = state.momentum;
      v(name + "/momentum_buffer", loaded);
      if (!(loaded.shape() == state.momentum.shape()))
        fail_data("[muon] state '", name, "/momentum_buffer' has shape ", loaded.shape(), "; expected ", state.momentum.shape());
      state.momentum = loaded;
    }
  }
  int64_t state_bytes(const std::string& name) const override {
    const auto found = states_.find(name);
    ROWAN_CHECK(found != states_.end(), "[muon] parameter '", name, "' has no state here");
    return found->second.momentum.size() * static_cast<int64_t>(sizeof(Real));
  }

  void step(const std::string& name, Parameter& p, const StepInfo& info) override {
    if (!p.has_grad()) return;
    State& state = state_of(name, p);
    ++state.step;
    Tensor update(p.shape());
    const Tensor& g = p.grad();
    const auto momentum = static_cast<Real>(momentum_), rest = static_cast<Real>(1 - momentum_);
    parallel_ranges(g.size(), kElementwiseGrain, [&](int64_t begin, int64_t end) {
      momentum_loop(g.data() + begin, state.momentum.data() + begin, update.data() + begin, end - begin,
                    static_cast<Real>(info.grad_scale), momentum, rest, nesterov_);
    });
    p.var.clear_grad();
    newton_schulz(update, ns_steps_);
    const double lr = lr_ * info.lr_factor;
    const auto shrink = static_cast<Real>(1 - lr * weight_decay_of(p)), size = static_cast<Real>(lr * scale_of(p.shape()));
    parallel_ranges(update.size(), kElementwiseGrain, [&](int64_t begin, int64_t end) {
      update_loop(update.data() + begin, p.value().data() + begin, end - begin, shrink, size);
    });
  }

 private:
  struct State {
    int64_t step = 0;
    Tensor momentum;
  };

  State& state_of(const std::string& name, Parameter& p) {
    if (const auto found = states_.find(name); found != states_.end()) {
      ROWAN_CHECK(found->second.momentum.shape() == p.shape(), "[muon] parameter '", name, "' was prepared with shape ",
                  found->second.momentum.shape(), " and now has ", p.shape());
      return found->second;
    }
    ROWAN_CHECK(p.kind() == GradKind::kDense, "[muon] parameter '", name, "' ", p.shape(),
                " is row-sparse: muon makes the update of a whole matrix orthogonal, which the touched rows alone can't tell; ",
                "give it a group with another rule, such as adamw");
    ROWAN_CHECK(p.shape().rank() == 2, "[muon] parameter '", name, "' ", p.shape(),
                " is no matrix: muon is for matrices; give it a group with another rule, such as adamw");
    return states_.emplace(name, State{0, Tensor::zeros(p.shape())}).first->second;
  }

  double scale_of(const Shape& shape) const {
    const auto rows = static_cast<double>(shape[0]), columns = static_cast<double>(shape[1]);
    return scale_ == "rms" ? 0.2 * std::sqrt(std::max(rows, columns)) : std::sqrt(std::max(1.0, rows / columns));
  }

  double momentum_ = 0.95;
  bool nesterov_ = true;
  int64_t ns_steps_ = 5;
  std::string scale_ = "shape";
  std::map<std::string, State> states_;
};

ROWAN_REGISTER_OPTIMIZER("muon", Muon);

}  // namespace
}  // namespace rowan
