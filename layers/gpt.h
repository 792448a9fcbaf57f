// Gpt: the language model. Token embedding, positions, n_layer pre-norm blocks, a final norm and the LM head.
//
//   x = embed(tokens) [+ positions]
//   per block:  x += attn(norm1(x));  x += mlp(norm2(x))
//   logits = final_norm(x) head^T          head = the embedding table when tied
//
// Parameter names are those of checkpoints (docs/CHECKPOINT.md). Whether dropout is on is said by the Pass.
#pragma once

#include <deque>
#include <optional>

#include "core/ops/sampled_softmax.h"
#include "layers/attention.h"
#include "layers/embedding.h"
#include "layers/gpt_config.h"
#include "layers/learned_positions.h"
#include "layers/mlp.h"
#include "layers/norm.h"

namespace rowan {

struct Block final : Module {
  Norm norm1;
  SelfAttention attn;
  Norm norm2;
  Mlp mlp;

  explicit Block(const GptConfig& c) : norm1(c), attn(c), norm2(c), mlp(c) {}
  void visit(ParamVisitor& v) override;
  Variable forward(const Variable& x, const Pass& pass, int64_t index) const;  // (B,T,D) -> (B,T,D)
  Variable decode(const Variable& x, KvCache& cache) const;                    // (1,t,D) -> (1,t,D)
};

class Gpt final : public Module {
 public:
  // config is resolved here (zeros filled in, checked). Initial values are those of GPT-2, drawn from the seed. Error for gradients
  // of the head that tied = true or false does not allow.
  Gpt(GptConfig config, uint64_t seed, HeadGrads head = HeadGrads::kDense);

  void visit(ParamVisitor& v) override;
  const GptConfig& config() const { return config_; }

  // Final hidden states (B,T,D) of tokens (B,T). Checks ids and length before anything else.
  Variable hidden(const Ids& tokens, const Pass& pass);
  // scale * sum of the cross-entropy over counted targets (B,T); targets of kIgnored do not count.
  Variable loss(const Ids& tokens, const Ids& targets, double scale, const Pass& pass, HeadStats* stats = nullptr);
  // The same over the targets and the negatives alone: an estimate, for training.
  Variable sampled_loss(const Ids& tokens, const Ids& targets, const Negatives& negatives, double scale, const Pass& pass,
                        HeadStats* stats = nullptr);
  Tensor logits(const Ids& tokens);  // (B,T,V), no tape, no dropout

  // Generation: keys and values of the tokens so far, one cache a block.
  struct Cache {
    std::vector<KvCache> blocks;
    int64_t length = 0;    // tokens so far
    int64_t capacity = 0;  // never above max_seq_len with learned positions
  };
  Cache make_cache(int64_t capacity) const;
  // Feeds new tokens (1,t); returns the logits (V) after the last one.
  Tensor next_logits(const Ids& tokens, Cache& cache);

  const Parameter& head() const { return head_.present() ? head_ : tokens_.weight; }
  // With HeadGrads::kTwoSource: the head as a parameter of its own on the token table's weights, with the softmax's gradient.
  // visit() does not show it, since its weights are in the table. Else nullptr.
  Parameter* shared_head() { return config_.tied && head_.present() ? &head_ : nullptr; }
  Parameter& token_table() { return tokens_.weight; }
  Parameter& position_table() { return positions_.weight; }  // absent unless positions = "learned"

 private:
  void check_input(const Ids& tokens, int64_t first_position) const;
  Variable embed(const Ids& tokens, int64_t first_position) const;

  GptConfig config_;
  Embedding tokens_;
  LearnedPositions positions_;
  std::deque<Block> blocks_;
  Norm final_norm_;
  Parameter head_;  // (V,D); absent when tied, unless it shares the table's weights
};

int64_t parameter_count(Module& m);

}  // namespace rowan
