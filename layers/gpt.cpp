#include "layers/gpt.h"

#include <cmath>

#include "core/ops/add.h"
#include "core/ops/dropout.h"
#include "core/ops/recompute.h"
#include "layers/init.h"

namespace rowan {
namespace {

GptConfig resolved(GptConfig config) {
  config.resolve();
  return config;
}

bool ends_with(const std::string& s, const std::string& end) {
  return s.size() >= end.size() && s.compare(s.size() - end.size(), end.size(), end) == 0;
}

// GPT-2's initial values: the projections that write into the residual stream start smaller, since 2L of them add up.
void initialize(Gpt& model, uint64_t seed) {
  constexpr double kDeviation = 0.02;
  const double residual = kDeviation / std::sqrt(2.0 * static_cast<double>(model.config().n_layer));
  for_each_parameter(model, [&](const std::string& name, Parameter& p) {
    if (ends_with(name, ".bias"))
      p.value().fill(0);
    else if (p.shape().rank() == 1)
      p.value().fill(1);
    else
      init_normal(p, seed, name, ends_with(name, "attn.out.weight") || ends_with(name, "mlp.down.weight") ? residual : kDeviation);
  });
}

// Dropout sites: 0 after the embedding, then three a block.
enum BlockSite : uint32_t { kAttentionWeights = 1, kAttentionBranch = 2, kMlpBranch = 3 };

RandomKey site_key(const Pass& pass, uint32_t site) {
  RandomKey key = pass.key;
  key.purpose = Purpose::kDropout;
  key.site = site;
  return key;
}

double rate(const Pass& pass) {
  return pass.training ? pass.dropout : 0;
}

}  // namespace

void Block::visit(ParamVisitor& v) {
  v("norm1", norm1);
  v("attn", attn);
  v("norm2", norm2);
  v("mlp", mlp);
}

Variable Block::forward(const Variable& x, const Pass& pass, int64_t index) const {
  const double p = rate(pass);
  const auto key = [&](BlockSite site) { return site_key(pass, static_cast<uint32_t>(3 * index) + site); };
  const Variable h = add(x, dropout(attn.forward(norm1.forward(x), p, key(kAttentionWeights)), p, key(kAttentionBranch)));
  return add(h, dropout(mlp.forward(norm2.forward(h)), p, key(kMlpBranch)));
}

Variable Block::decode(const Variable& x, KvCache& cache) const {
  const Variable h = add(x, attn.decode(norm1.forward(x), cache));
  return add(h, mlp.forward(norm2.forward(h)));
}

Gpt::Gpt(GptConfig config, uint64_t seed, HeadGrads head)
    : config_(resolved(std::move(config))),
      tokens_(config_.vocab_size, config_.d_model,
              config_.tied && head != HeadGrads::kTwoSource ? GradKind::kDense : GradKind::kRowSparse),
      final_norm_(config_) {
  if (config_.positions == "learned") positions_ = LearnedPositions(config_.max_seq_len, config_.d_model);
  for (int64_t i = 0; i < config_.n_layer; ++i) blocks_.emplace_back(config_);
  ROWAN_CHECK(head == HeadGrads::kDense || config_.tied == (head == HeadGrads::kTwoSource),
              "[gpt] tied = ", config_.tied ? "true" : "false", ": a row-sparse head must be untied, one of two sources tied");
  if (!config_.tied) {
    head_ = Parameter(Tensor({config_.vocab_size, config_.d_model}),
                      head == HeadGrads::kRowSparse ? GradKind::kRowSparse : GradKind::kDense);
  } else if (head == HeadGrads::kTwoSource) {
    head_ = Parameter(tokens_.weight.value());
    tokens_.weight.decays = false;
  }
  initialize(*this, seed);
}

void Gpt::visit(ParamVisitor& v) {
  v("embed.tokens", tokens_);
  v("embed.positions", positions_);
  for (size_t i = 0; i < blocks_.size(); ++i) v("blocks." + std::to_string(i), blocks_[i]);
  v("final_norm", final_norm_);
  if (!config_.tied) v("head.weight", head_);
}

void Gpt::check_input(const Ids& tokens, int64_t first_position) const {
  ROWAN_CHECK(tokens.shape().rank() == 2, "[gpt] tokens must be (B,T), not ", tokens.shape());
  const int64_t end = first_position + tokens.shape()[1];
  ROWAN_CHECK(config_.positions != "learned" || end <= config_.max_seq_len, "[gpt] the input is ", end,
              " tokens long, but the learned positions end at max_seq_len = ", config_.max_seq_len);
  check_ids(tokens, config_.vocab_size, "embed.tokens");
}

Variable Gpt::embed(const Ids& tokens, int64_t first_position) const {
  check_input(tokens, first_position);
  const Variable x = tokens_.forward(tokens);
  return positions_.weight.present() ? positions_.forward(x, first_position) : x;
}

Variable Gpt::hidden(const Ids& tokens, const Pass& pass) {
  Variable x = dropout(embed(tokens, 0), rate(pass), site_key(pass, 0));
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const auto block = [&b = blocks_[i], pass, index = static_cast<int64_t>(i)](const Variable& in) {
      return b.forward(in, pass, index);
    };
    x = pass.recompute ? recompute(x, block) : block(x);
  }
  return final_norm_.forward(x);
}

Variable Gpt::loss(const Ids& tokens, const Ids& targets, double scale, const Pass& pass, HeadStats* stats) {
  ROWAN_CHECK(tokens.shape() == targets.shape(), "[gpt] tokens are ", tokens.shape(), " but targets are ", targets.shape());
  return head_cross_entropy(hidden(tokens, pass), head().var, targets, scale, stats);
}

Variable Gpt::sampled_loss(const Ids& tokens, const Ids& targets, const Negatives& negatives, double scale, const Pass& pass,
                           HeadStats* stats) {
  ROWAN_CHECK(tokens.shape() == targets.shape(), "[gpt] tokens are ", tokens.shape(), " but targets are ", targets.shape());
  return sampled_softmax(hidden(tokens, pass), head().var, targets, negatives, scale, stats);
}

Tensor Gpt::logits(const Ids& tokens) {
  const NoGrad no_grad;
  const Tensor x = hidden(tokens, {}).value();
  return head_logits(x, head().value()).reshape({tokens.shape()[0], tokens.shape()[1], config_.vocab_size});
}

Gpt::Cache Gpt::make_cache(int64_t capacity) const {
  ROWAN_CHECK(config_.positions != "learned" || capacity <= config_.max_seq_len, "[gpt] a cache of ", capacity,
              " tokens, but the learned positions end at max_seq_len = ", config_.max_seq_len);
  Cache cache;
  cache.capacity = capacity;
  for (size_t i = 0; i < blocks_.size(); ++i) cache.blocks.emplace_back(1, blocks_[i].attn.heads, capacity);
  return cache;
}

Tensor Gpt::next_logits(const Ids& tokens, Cache& cache) {
  const NoGrad no_grad;
  const int64_t count = tokens.size();
  ROWAN_CHECK(count > 0, "[gpt] next_logits needs at least one token");
  ROWAN_CHECK(cache.length + count <= cache.capacity, "[gpt] the cache holds ", cache.length, " of ", cache.capacity, " tokens; ",
              count, " more do not fit");
  Variable x = embed(tokens, cache.length);
  for (size_t i = 0; i < blocks_.size(); ++i) x = blocks_[i].decode(x, cache.blocks[i]);
  cache.length += count;
  const Tensor last = Tensor::from({1, config_.d_model}, x.value().row(count - 1));
  return head_logits(final_norm_.forward(Variable(last)).value(), head().value()).reshape({config_.vocab_size});
}

int64_t parameter_count(Module& m) {
  int64_t count = 0;
  for_each_parameter(m, [&](const std::string&, Parameter& p) { count += p.value().size(); });
  return count;
}

}  // namespace rowan
