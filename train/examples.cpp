#include "train/examples.h"

#include <algorithm>
#include <vector>

#include "core/error.h"
#include "core/ids.h"

namespace rowan {

TextExamples::TextExamples(std::shared_ptr<const Tokens> tokens, int64_t seq_len, const std::string& what, bool allow_short)
    : tokens_(std::move(tokens)), seq_len_(seq_len) {
  ROWAN_CHECK(seq_len >= 1, "[data] expected seq_len >= 1, got ", seq_len);
  const int64_t needed = allow_short ? 2 : seq_len + 1;
  if (tokens_->size() >= needed) return;
  throw Error(join_text("[data] ", what, " has ", tokens_->size(), " tokens; seq_len = ", seq_len, " needs at least ", needed),
              ErrorKind::kData, allow_short ? "give more text, or a larger val_fraction" : "give more text, or a smaller seq_len");
}

int64_t TextExamples::starts() const {
  return std::max<int64_t>(1, tokens_->size() - seq_len_);
}

void TextExamples::read(int64_t start, std::span<int32_t> inputs, std::span<int32_t> out_targets) const {
  ROWAN_ASSERT(static_cast<int64_t>(inputs.size()) == seq_len_ && inputs.size() == out_targets.size());
  ROWAN_ASSERT(start >= 0 && start < tokens_->size() - 1);
  const size_t count = static_cast<size_t>(std::min(seq_len_, tokens_->size() - 1 - start));
  // Inputs are the targets moved by one, so only the first of them has to be read.
  tokens_->read(start + 1, out_targets.first(count));
  tokens_->read(start, inputs.first(1));
  std::copy_n(out_targets.begin(), count - 1, inputs.begin() + 1);
  std::fill(inputs.begin() + static_cast<int64_t>(count), inputs.end(), 0);
  std::fill(out_targets.begin() + static_cast<int64_t>(count), out_targets.end(), kIgnored);
}

}  // namespace rowan
