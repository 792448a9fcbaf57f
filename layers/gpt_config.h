// GptConfig: the shape of a model, as [model] in a config file. One model covers GPT-2's shape (learned positions, LayerNorm, GELU,
// biases) and Llama's (RoPE, RMSNorm, SwiGLU, grouped key/value heads, no biases).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/visit.h"

namespace rowan {

struct RopeConfig {
  double theta = 10000;        // rotation of pair i at position p: p * theta^(-2i/hd)
  std::string style = "half";  // "half" pairs (i, i + hd/2), "interleaved" pairs (2i, 2i+1)
  double fraction = 1;         // the share of each head that is rotated, from its first element on

  void visit(FieldVisitor& v) {
    v("theta", theta, "base of the rotation frequencies", above(0));
    v("style", style, "which elements of a head form a pair", one_of({"half", "interleaved"}));
    v("fraction", fraction, "share of each head that is rotated", Limits{.low = 0, .high = 1, .low_open = true});
  }
};

// Why a shape makes no sense.
struct GptConfigProblem {
  std::vector<std::string> fields;  // as in visit(): "n_head", "rope.fraction"
  std::string what;
  std::string hint;
};

// How the gradients of the token table and of the head are kept, which depends on what trains them. It changes no shape and no
// value.
enum class HeadGrads {
  kDense,      // that of the head is (V,D); of a tied table there is one, of lookup and head together
  kRowSparse,  // untied: the head's by rows, for a loss that reads some rows alone (core/ops/sampled_softmax.h)
  kTwoSource,  // tied: the lookup's by rows and the head's (V,D), as of two parameters that have the same weights
};

struct GptConfig {
  int64_t d_model = 128;
  int64_t n_layer = 4;
  int64_t n_head = 4;
  int64_t n_kv_head = 0;   // 0: n_head
  int64_t d_ff = 0;        // 0: 4*d_model; swiglu: 8/3*d_model rounded up to a multiple of 32
  int64_t vocab_size = 0;  // 0: the tokenizer's
  int64_t max_seq_len = 64;
  std::string positions = "learned";
  std::string norm = "layernorm";
  double norm_eps = 1e-5;
  std::string mlp = "gelu_tanh";
  bool bias = true;
  bool tied = true;
  double dropout = 0;
  RopeConfig rope;  // [model.rope]

  void visit(FieldVisitor& v) {
    const Limits count = between(1, 1 << 24);
    v("d_model", d_model, "width of the residual stream", count);
    v("n_layer", n_layer, "number of blocks", between(0, 4096));
    v("n_head", n_head, "query heads; must divide d_model", count);
    v("n_kv_head", n_kv_head, "key/value heads; must divide n_head (0: n_head)", between(0, 1 << 24));
    v("d_ff", d_ff, "feed-forward width (0: 4*d_model; swiglu: 8/3*d_model rounded up to a multiple of 32)", between(0, 1 << 26));
    v("vocab_size", vocab_size, "rows of the token embedding (0: the tokenizer's)", between(0, 2147483647.0));
    v("max_seq_len", max_seq_len, "longest sequence; rows of the learned position table", count);
    v("positions", positions, "how a position reaches the model", one_of({"learned", "rope", "none"}));
    v("norm", norm, "normalization before attention, MLP and head", one_of({"layernorm", "rmsnorm"}));
    v("norm_eps", norm_eps, "added to the variance (layernorm) or mean square (rmsnorm)", above(0));
    v("mlp", mlp, "feed-forward activation", one_of({"gelu_tanh", "gelu", "swiglu"}));
    v("bias", bias, "biases in linear layers and layer norms");
    v("tied", tied, "the LM head uses the token embedding's table; both are then dense");
    v("dropout", dropout, "probability of dropping embeddings, attention weights and residual branches", from_below(0, 1));
  }

  // What one field alone can't tell: divisibility, an even rotated width, a size that can be counted. Empty when all is well;
  // n_kv_head, d_ff and vocab_size may still be 0. Config readers add the places of the fields that it names.
  std::optional<GptConfigProblem> find_problem() const;

  // Fills in the zeros above (vocab_size must be known by now). Throws Error for what find_problem() finds.
  void resolve();

  int64_t kv_heads() const { return n_kv_head == 0 ? n_head : n_kv_head; }
  int64_t head_dim() const { return d_model / n_head; }
  int64_t ff_width() const;       // d_ff, or what its 0 stands for
  int64_t rotated_width() const;  // elements of each head that RoPE rotates: rope.fraction * head_dim(), to the nearest even number
};

}  // namespace rowan
