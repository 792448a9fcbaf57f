// Data that the program makes itself: data.train = "builtin:<name>".
//
//   builtin:sort   A sequence of `length` letters followed by the same letters sorted, over an alphabet A, B, C, ...; only the
//                  sorted half is counted in the loss. Like minGPT's sorting demonstration. Every possible input is an example.
//   builtin:zipf   Ids with Zipf's frequencies and a known answer to each (train/zipf_data.h); [data.zipf] has its settings.
#pragma once

#include <memory>
#include <string>

#include "core/tensor.h"
#include "train/config.h"
#include "train/data_loader.h"
#include "train/examples.h"
#include "train/tokenizer.h"

namespace rowan {

class SortExamples : public Examples {
 public:
  SortExamples(int letters, int length);  // letters^length examples; Error above 2^20

  int letters() const { return letters_; }
  int length() const { return length_; }
  int64_t seq_len() const override { return 2 * length_ - 1; }  // the last sorted letter is only a target
  int64_t starts() const override { return count_; }
  int64_t stride() const override { return 1; }
  int64_t targets() const override { return count_ * length_; }
  int64_t targets_per_row() const override { return length_; }
  // Example `start` has as input the digits of `start` in base `letters`, the most significant first.
  void read(int64_t start, std::span<int32_t> inputs, std::span<int32_t> out_targets) const override;
  std::string fingerprint() const override;

 private:
  int letters_, length_;
  int64_t count_ = 1;
};

bool is_builtin(const std::string& path);          // begins with "builtin:"
std::string builtin_of(const DataConfig& config);  // what config.train names, or "" for files

struct BuiltinData {
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<const Examples> train;
  std::shared_ptr<const Examples> val;  // the same object where all there is trains and validates
};
// `path` is that of config.train or of another split; the rest of config says what the data is like. Error for an unknown name, and
// for settings that make no sense together: another seq_len than the data's own, drift or bursts in an order that has no time.
BuiltinData make_builtin(const std::string& path, const DataConfig& config);

// Rows of a batch whose every counted target is the argmax of its logits (B,T,V); ties go to the lowest id. For the sorting data
// that is the number of inputs that greedy generation sorts right: a completion goes wrong first at some letter, and up to there
// generation saw what the batch shows.
int64_t rows_all_correct(const Batch& batch, const Tensor& logits);

}  // namespace rowan
