// StepCost: what one micro-batch of training computes and moves, counted from a model's shape alone.
//
// FLOPs count a multiplication and an addition as two. "Counted" FLOPs are the field's convention, 6 P + 12 L D T a token: all
// weights forward and backward, and attention without regard to the causal mask (Chowdhery et al., "PaLM", 2022, appendix B).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/kernels/gemm.h"
#include "layers/parameter_specs.h"

namespace rowan {

struct StepShape {
  GptConfig model;  // resolved
  int64_t batch = 1;
  int64_t seq_len = 1;
  int64_t negatives = 0;  // drawn classes of a sampled head; 0: the head is over the whole vocabulary

  int64_t tokens() const { return batch * seq_len; }  // N
};

// One kind of matrix product of a step, as gemm() is called for it.
struct StepProduct {
  std::string layer;  // "attn.qkv", "head"
  std::string pass;   // "forward", "dx", "dw"
  Op op_a = Op::kNone, op_b = Op::kNone;
  int64_t m = 0, n = 0, k = 0;
  int64_t count = 1;  // in one micro-batch

  double flops() const { return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k); }
};

struct Config;
StepShape step_shape(const Config& config);  // of the model at the end of the run: train.untie_at

// Rows of a row-sparse parameter that have a gradient after so many micro-batches, at most.
int64_t most_rows_read(const Config& config, const ParameterSpec& spec, int64_t micro_batches);

// Those of linear layers and the head. The head's rows go in chunks; their size is that of head_cross_entropy.
std::vector<StepProduct> step_products(const StepShape& shape);

int64_t parameter_count(const GptConfig& model);
// 6 P + 12 L D T: forward and backward of every weight and of attention, as the field counts them (Chinchilla's appendix F and
// PaLM's appendix B).
// With negatives > 0 a token meets that many rows of the head and its target's, and one of the token table: P counts these alone.
double counted_flops_per_token(const GptConfig& model, int64_t seq_len, int64_t negatives = 0);

}  // namespace rowan
