#include "train/generate.h"

#include <algorithm>

#include "train/stop_matcher.h"
#include "train/stream_decoder.h"

namespace rowan {
namespace {

// Feeds the context to the cache so that the next token's logits are known, starting over with the last half when it is full.
class Context {
 public:
  Context(Gpt& model, std::vector<int32_t> prompt)
      : model_(model), tokens_(std::move(prompt)), cache_(model.make_cache(model.config().max_seq_len)) {}

  const std::vector<int32_t>& tokens() const { return tokens_; }
  void push(int32_t id) { tokens_.push_back(id); }

  Tensor logits() {
    const auto size = static_cast<int64_t>(tokens_.size());
    if (size - start_ > cache_.capacity) {
      start_ = size - std::min(size, std::max<int64_t>(1, cache_.capacity / 2));
      cache_ = model_.make_cache(cache_.capacity);
    }
    const int64_t fed = start_ + cache_.length;
    return model_.next_logits(Ids({1, size - fed}, {tokens_.begin() + fed, tokens_.end()}), cache_);
  }

 private:
  Gpt& model_;
  std::vector<int32_t> tokens_;
  Gpt::Cache cache_;
  int64_t start_ = 0;  // the token at position 0 of the cache
};

}  // namespace

void GenerateOptions::validate() const {
  ROWAN_CHECK(tokens >= 0, "[sample] expected tokens >= 0, got ", tokens);
  sampler.validate();
  [[maybe_unused]] const StopMatcher matcher(stop);
}

GenerateResult generate(Gpt& model, std::shared_ptr<const Tokenizer> tokenizer, std::string_view prompt,
                        const GenerateOptions& options, const std::function<void(std::string_view)>& emit,
                        const std::function<bool()>& keep_going) {
  ROWAN_CHECK(!prompt.empty(), "[sample] the prompt is empty; give at least one character to continue");
  options.validate();
  GenerateResult result;
  const Sampler sampler(options.sampler);
  StreamDecoder decoder(tokenizer);
  StopMatcher matcher(options.stop);
  Context context(model, tokenizer->encode(prompt, {.name = "the prompt", .is_prompt = true}));
  for (int64_t i = 0; i < options.tokens && !matcher.stopped(); ++i) {
    if (keep_going && !keep_going()) break;
    const Tensor logits = context.logits();
    // The model may have more rows than the tokenizer has ids: those stand for nothing and are never drawn.
    const auto known = static_cast<size_t>(tokenizer->vocab_size());
    const int32_t id = sampler.next(logits.values().first(known), context.tokens(), static_cast<int64_t>(context.tokens().size()));
    context.push(id);
    result.ids.push_back(id);
    if (const std::string text = matcher.push(decoder.push(id)); !text.empty()) emit(text);
  }
  result.stopped = matcher.stopped();
  if (!result.stopped) {
    const std::string rest = matcher.push(decoder.finish()) + matcher.finish();
    if (!rest.empty()) emit(rest);
  }
  return result;
}

}  // namespace rowan
