// Examples: what a DataLoader draws from. An example is T input ids and T target ids, and is named by its start: the offset of its
// first token in a text, or the number of a generated one.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "train/tokens.h"

namespace rowan {

class Examples {
 public:
  virtual ~Examples() = default;
  virtual int64_t seq_len() const = 0;  // T
  // An example may begin at any start in [0, starts()); starts() >= 1.
  virtual int64_t starts() const = 0;
  // Examples whose starts differ by this share no target: T for a text, 1 for generated examples.
  virtual int64_t stride() const = 0;
  // Targets of the whole set, each counted once: what an evaluation of the whole split covers.
  virtual int64_t targets() const = 0;
  virtual int64_t targets_per_row() const = 0;  // of an example that lies inside: T for a text
  // Fills T inputs and T targets. Where an example reaches past the end of the set (only evaluation asks for that), inputs are 0
  // and targets kIgnored.
  virtual void read(int64_t start, std::span<int32_t> inputs, std::span<int32_t> out_targets) const = 0;
  virtual std::string fingerprint() const = 0;  // hex; equal for equal content, whatever T is
};

// Windows of a running text: target i is the token after input i.
class TextExamples : public Examples {
 public:
  // Error when there are fewer than seq_len + 1 tokens; `what` names the split. With allow_short (validation), two are enough.
  TextExamples(std::shared_ptr<const Tokens> tokens, int64_t seq_len, const std::string& what, bool allow_short = false);

  int64_t seq_len() const override { return seq_len_; }
  int64_t starts() const override;
  int64_t stride() const override { return seq_len_; }
  int64_t targets() const override { return tokens_->size() - 1; }
  int64_t targets_per_row() const override { return seq_len_; }
  void read(int64_t start, std::span<int32_t> inputs, std::span<int32_t> out_targets) const override;
  std::string fingerprint() const override { return tokens_->fingerprint(); }

 private:
  std::shared_ptr<const Tokens> tokens_;
  int64_t seq_len_;
};

}  // namespace rowan
