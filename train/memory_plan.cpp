#include "train/memory_plan.h"

#include <algorithm>
#include <map>
#include <string>

#include "core/buffer_pool.h"
#include "core/kernels/attention_tiles.h"
#include "core/ops/detail/norm_backward.h"
#include "core/ops/head_cross_entropy.h"
#include "core/parallel.h"
#include "layers/parameter_specs.h"
#include "optim/groups.h"
#include "optim/planned_state.h"
#include "train/step_cost.h"

namespace rowan {
namespace {

// The buffer pool's bookkeeping without its buffers.
class PoolModel {
 public:
  void take(int64_t elements) {
    const int64_t bytes = bytes_of(elements);
    in_use_ += bytes;
    peak_ = std::max(peak_, in_use_);
    int64_t& free = free_[bytes];
    free > 0 ? void(--free) : void(held_ += bytes);
  }
  void give(int64_t elements) {
    const int64_t bytes = bytes_of(elements);
    in_use_ -= bytes;
    ++free_[bytes];
  }
  void pass(int64_t elements) {  // a buffer of a moment
    take(elements);
    give(elements);
  }

  int64_t in_use() const { return in_use_; }
  int64_t peak() const { return peak_; }
  int64_t held() const { return held_; }

 private:
  static int64_t bytes_of(int64_t elements) { return pooled_bytes(elements * static_cast<int64_t>(sizeof(Real))); }

  std::map<int64_t, int64_t> free_;  // buffers by size
  int64_t in_use_ = 0, peak_ = 0, held_ = 0;
};

// One training step, as Gpt, the ops and the tape run it. Names of sizes are those of shapes: N tokens, D, F, Q = (H+2K) hd.
class StepWalk {
 public:
  StepWalk(const Config& config, PoolModel& pool)
      : config_(config),
        c_(step_shape(config).model),
        negatives_(step_shape(config).negatives),
        pool_(pool),
        batch_(config.data.batch_size),
        length_(config.data.seq_len),
        n_(batch_ * length_),
        nd_(n_ * c_.d_model),
        nh_(n_ * c_.n_head * c_.head_dim()),
        nq_(n_ * (c_.n_head + 2 * c_.kv_heads()) * c_.head_dim()),
        nf_(n_ * c_.ff_width()),
        dropout_(c_.dropout > 0),
        swiglu_(c_.mlp == "swiglu"),
        recompute_(config.train.recompute),
        specs_(parameter_specs(c_, head_grads_at(config, config.train.steps))) {}

  // One micro-batch. `first`: no parameter has a gradient yet.
  void micro_batch(bool first) {
    first_ = first;
    embed_forward();
    for (int64_t i = 0; i < c_.n_layer; ++i) recompute_ ? block_forward_without_tape() : block_forward();
    norm_forward();
    kept_ = pool_.in_use();
    head();
    norm_backward(true);
    gradients_of("final_norm");
    for (int64_t i = c_.n_layer - 1; i >= 0; --i) block_backward(i);
    embed_backward();
  }
  int64_t kept() const { return kept_; }  // in use at the end of the forward pass

  // What one more micro-batch leaves with the tables that are updated by rows.
  void keep_rows() {
    for (const ParameterSpec& s : specs_)
      if (s.kind == GradKind::kRowSparse) take_rows(s, 1);
  }

  // Clipping and update: row-sparse gradients are brought to one row an id, then all gradients go.
  void update(int64_t micro_batches) {
    for (const ParameterSpec& s : specs_) {
      if (s.kind == GradKind::kDense) {
        pool_.pass(optimizer_for(config_, s.name).update_scratch_bytes(s.shape) / static_cast<int64_t>(sizeof(Real)));
        pool_.give(s.shape.size());
        continue;
      }
      const int64_t sums = most_rows_read(config_, s, micro_batches) * c_.d_model;
      pool_.take(sums);
      for (int64_t i = 0; i < micro_batches; ++i) take_rows(s, -1);
      pool_.give(sums);
    }
  }

 private:
  // sign 1 takes, -1 gives back.
  void take_rows(const ParameterSpec& s, int sign) {
    const auto move = [&](int64_t elements) { sign > 0 ? pool_.take(elements) : pool_.give(elements); };
    const bool tokens = s.name == "embed.tokens.weight", head = s.name == "head.weight";
    move((tokens || head ? n_ : length_) * c_.d_model);
    if (head) move(negatives_ * c_.d_model);
  }
  void gradient(const std::string& name) {  // of a dense parameter, when first written
    if (!first_) return;
    for (const ParameterSpec& s : specs_)
      if (s.name == name && s.kind == GradKind::kDense) pool_.take(s.shape.size());
  }
  void gradients_of(const std::string& layer) {
    gradient(layer + ".weight");
    gradient(layer + ".bias");
  }

  void embed_forward() {
    pool_.take(nd_);
    if (c_.positions == "learned") {
      pool_.take(length_ * c_.d_model), pool_.take(nd_);
      pool_.give(length_ * c_.d_model), pool_.give(nd_);
    }
    if (dropout_) pool_.pass(nd_);
  }
  void embed_backward() {  // dx is in use
    pool_.give(nd_);       // what the first block read
    if (dropout_) pool_.pass(nd_);
    if (c_.positions == "learned") pool_.take(length_ * c_.d_model);  // the gradient of the rows, kept by the table
    if (specs_.front().kind == GradKind::kRowSparse) return;          // the token table keeps dx
    const int64_t sums = std::min(n_, c_.vocab_size) * c_.d_model;
    pool_.pass(sums);
    pool_.give(nd_);
  }

  void norm_forward() {
    pool_.take(nd_);
    pool_.take(n_);
    if (c_.norm != "rmsnorm") pool_.take(n_);
  }
  // `fresh`: x has no gradient yet, so that dx is a new buffer.
  void norm_backward(bool fresh) {
    const int64_t grain = detail::norm_rows_a_piece(n_), sums = (n_ + grain - 1) / grain * c_.d_model;
    if (fresh) pool_.take(nd_);
    pool_.pass(sums);
    pool_.give(nd_);  // dy
    pool_.give(n_);
    if (c_.norm != "rmsnorm") pool_.give(n_);
  }

  void block_forward() {
    norm_forward();
    pool_.take(nq_);
    attention_forward();
    add_branch();
    norm_forward();
    pool_.take(nf_), pool_.take(nf_);
    if (swiglu_) pool_.take(nf_);
    add_branch();
  }
  void add_branch() {  // its projection, dropout, the sum: which alone stays
    pool_.take(nd_);
    if (dropout_) pool_.take(nd_);
    pool_.take(nd_);
    if (dropout_) pool_.give(nd_);
    pool_.give(nd_);
  }

  // Values go as soon as nothing reads them any more; the result stays.
  void block_forward_without_tape() {
    pool_.take(nd_), pool_.take(nq_), pool_.take(nh_), pool_.take(batch_ * c_.n_head * length_);
    pool_.give(nq_), pool_.take(nd_);
    pool_.give(nh_), pool_.give(batch_ * c_.n_head * length_), pool_.give(nd_);
    pool_.pass(nd_);  // the sum, after which the branch goes
    pool_.take(nd_);  // its norm
    for (int i = 0; i < (swiglu_ ? 3 : 1); ++i) pool_.take(nf_);
    pool_.take(nd_);
    for (int i = 0; i < (swiglu_ ? 3 : 1); ++i) pool_.give(nf_);
    pool_.give(nd_);
    pool_.take(nd_);
    for (int i = 0; i < 2; ++i) pool_.give(nd_);  // the branch and the sum
  }

  // dx of the block's result is in use, and becomes that of its input.
  void block_backward(int64_t index) {
    const std::string block = "blocks." + std::to_string(index) + ".";
    if (recompute_) block_forward();
    pool_.give(nd_);  // the block's result
    branch_from_dropout();
    pool_.take(nf_);
    gradients_of(block + "mlp.down");
    leave_branch();
    if (swiglu_) {
      pool_.take(nf_), pool_.take(nf_);  // dgate, dup
      pool_.give(nf_), pool_.give(nf_);  // y, dy
    }
    pool_.take(nd_);
    gradients_of(block + "mlp.up");
    if (swiglu_) gradients_of(block + "mlp.gate");
    for (int i = 0; i < (swiglu_ ? 4 : 3); ++i) pool_.give(nf_);
    pool_.give(nd_);  // the norm's result
    norm_backward(false);
    gradients_of(block + "norm2");
    pool_.give(nd_);  // the sum
    branch_from_dropout();
    pool_.take(nh_);
    gradients_of(block + "attn.out");
    leave_branch();
    attention_backward();
    pool_.take(nd_);
    gradients_of(block + "attn.qkv");
    pool_.give(nq_), pool_.give(nq_);  // qkv and its gradient
    pool_.give(nd_);                   // the norm's result
    norm_backward(false);
    gradients_of(block + "norm1");
    if (recompute_) pool_.give(nd_);  // the result that the forward pass kept
  }

  // A branch ends in a projection, with dropout behind it or not; its gradient is that of the sum, or a copy with dropout.
  void branch_from_dropout() {
    if (dropout_) pool_.take(nd_);
  }
  void leave_branch() {
    if (dropout_) pool_.give(nd_);
  }
  void attention_forward() {
    pool_.take(nh_);
    pool_.take(batch_ * c_.n_head * length_);
    const int64_t groups = batch_ * c_.kv_heads(), hd = c_.head_dim(), padded = round_up_to_lanes(hd);
    if (groups < kManyHeadGroups) {
      pool_.take(groups * positions() * hd);
      pool_.pass(groups * positions() * padded);
      pool_.give(groups * positions() * hd);
    }
  }
  void attention_backward() {
    const AttentionShape shape{.heads = c_.n_head, .kv_heads = c_.kv_heads(), .head_dim = c_.head_dim()};
    const int64_t groups = batch_ * c_.kv_heads(), elements = attention_backward_elements(shape, length_),
                  together = groups < kManyHeadGroups ? groups : std::min<int64_t>(groups, current_threads());
    pool_.take(nq_);
    for (int64_t i = 0; i < together; ++i) pool_.take(elements);
    for (int64_t i = 0; i < together; ++i) pool_.give(elements);
    pool_.give(nh_), pool_.give(nh_);  // the result and its gradient
    pool_.give(batch_ * c_.n_head * length_);
  }
  int64_t positions() const { return (length_ + KvCache::kPanel - 1) / KvCache::kPanel * KvCache::kPanel; }

  // Gradients are made in the forward pass; that of the weight becomes the parameter's, or is added to it.
  void head() {
    if (negatives_ > 0) return sampled_head();
    const int64_t vocab = c_.vocab_size, chunk = detail::head_chunk(n_, vocab), weight = vocab * c_.d_model;
    pool_.take(nd_), pool_.take(weight);
    pool_.pass(chunk * vocab);
    pool_.give(nd_);  // the last norm's result
    if (!first_) pool_.give(weight);
  }

  // Gradients of the rows that were read are kept by the table.
  void sampled_head() {
    const int64_t drawn = negatives_ * c_.d_model;
    pool_.take(drawn);
    pool_.take(nd_), pool_.take(drawn), pool_.take(nd_);
    pool_.pass(detail::head_chunk(n_, negatives_ + 1) * (negatives_ + 1));
    pool_.give(drawn);
  }

  const Config& config_;
  const GptConfig c_;
  const int64_t negatives_;
  PoolModel& pool_;
  const int64_t batch_, length_, n_, nd_, nh_, nq_, nf_;
  const bool dropout_, swiglu_, recompute_;
  const std::vector<ParameterSpec> specs_;
  bool first_ = true;
  int64_t kept_ = 0;
};

// Each thread keeps the largest operands that it has packed.
int64_t packed_bytes(const StepShape& shape) {
  int64_t a = 0, b = 0;
  for (const StepProduct& p : step_products(shape)) {
    const GemmTileSize tile = gemm_tile_size(p.m, p.n, p.k);
    a = std::max(a, tile.rows * p.k);
    b = std::max(b, tile.cols * p.k);
  }
  return current_threads() * (a + b) * static_cast<int64_t>(sizeof(uint16_t));
}

}  // namespace

const Optimizer& optimizer_for(const Config& config, const std::string& parameter) {
  for (const OptimGroupConfig& g : config.groups)
    if (glob_matches(g.params, parameter)) return *g.optimizer;
  return *config.optim.optimizer;
}

MemoryPlan plan_memory(const Config& config) {
  constexpr auto kBytes = static_cast<int64_t>(sizeof(Real));
  MemoryPlan plan;
  PoolModel pool;
  for (const ParameterSpec& s : parameter_specs(step_shape(config).model, head_grads_at(config, config.train.steps))) {
    if (!s.shared) plan.weights += s.shape.size() * kBytes;
    const Optimizer& rule = optimizer_for(config, s.name);
    const int64_t state = planned_state_bytes(rule, s.shape, s.kind);
    plan.optimizer_state += state;
    plan.copied += rule.planned_copy_bytes(s.shape, s.kind);
    plan.flushed += rule.planned_flush_bytes(s.shape, s.kind);
    plan.gradients += (s.kind == GradKind::kDense ? s.shape.size() : most_rows_read(config, s, 1) * s.shape[1]) * kBytes;
    if (!s.shared) pool.take(s.shape.size());
    for (int64_t left = state; left > 0; left -= s.shape.size() * kBytes) pool.take(std::min(left / kBytes, s.shape.size()));
  }
  const int64_t standing = pool.in_use();
  StepWalk walk(config, pool);
  walk.micro_batch(true);
  plan.activations = walk.kept() - standing;
  // The others are like the last one, which finds the rows of all of them kept.
  for (int64_t i = 2; i < config.train.grad_accum; ++i) walk.keep_rows();
  if (config.train.grad_accum > 1) walk.micro_batch(false);
  walk.update(config.train.grad_accum);
  plan.training = pool.peak();
  plan.pool = pool.held();
  if (config.model.tied && untied_by(config, config.train.steps)) {
    // Both models and their state exist while the head is untied. The new weights find buffers that gradients left, the state does
    // not.
    plan.training = std::max(plan.training, 2 * (plan.weights + plan.optimizer_state));
    plan.pool += plan.optimizer_state;
  }
  plan.checkpoint = plan.weights + plan.optimizer_state + plan.flushed;
  if (config.train.precision == "bf16") plan.packed = packed_bytes(step_shape(config));
  return plan;
}

}  // namespace rowan
