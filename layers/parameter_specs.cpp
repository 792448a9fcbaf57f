#include "layers/parameter_specs.h"

#include <utility>

namespace rowan {
namespace {

class SpecList {
 public:
  SpecList(const GptConfig& config, HeadGrads head) : c_(config), head_(head) {}

  std::vector<ParameterSpec> all() && {
    const bool learned = c_.positions == "learned";
    add("embed.tokens.weight", {c_.vocab_size, c_.d_model}, c_.tied && !two_source() ? GradKind::kDense : GradKind::kRowSparse);
    if (learned) add("embed.positions.weight", {c_.max_seq_len, c_.d_model}, GradKind::kRowSparse);
    for (int64_t i = 0; i < c_.n_layer; ++i) block("blocks." + std::to_string(i) + ".");
    norm("final_norm");
    if (!c_.tied || two_source())
      add("head.weight", {c_.vocab_size, c_.d_model}, head_ == HeadGrads::kRowSparse ? GradKind::kRowSparse : GradKind::kDense);
    if (c_.tied && two_source()) specs_.back().shared = true;
    return std::move(specs_);
  }

 private:
  void add(const std::string& name, const Shape& shape, GradKind kind = GradKind::kDense) { specs_.push_back({name, shape, kind}); }

  void norm(const std::string& name) {
    add(name + ".weight", {c_.d_model});
    if (c_.bias && c_.norm != "rmsnorm") add(name + ".bias", {c_.d_model});
  }

  void linear(const std::string& name, int64_t in, int64_t out) {
    add(name + ".weight", {out, in});
    if (c_.bias) add(name + ".bias", {out});
  }

  void block(const std::string& prefix) {
    const int64_t d = c_.d_model, heads = c_.n_head * c_.head_dim(), kv = c_.kv_heads() * c_.head_dim(), f = c_.ff_width();
    norm(prefix + "norm1");
    linear(prefix + "attn.qkv", d, heads + 2 * kv);
    linear(prefix + "attn.out", heads, d);
    norm(prefix + "norm2");
    linear(prefix + "mlp.up", d, f);
    if (c_.mlp == "swiglu") linear(prefix + "mlp.gate", d, f);
    linear(prefix + "mlp.down", f, d);
  }

  bool two_source() const { return head_ == HeadGrads::kTwoSource; }

  const GptConfig& c_;
  HeadGrads head_;
  std::vector<ParameterSpec> specs_;
};

}  // namespace

std::vector<ParameterSpec> parameter_specs(const GptConfig& config, HeadGrads head) {
  return SpecList(config, head).all();
}

}  // namespace rowan
