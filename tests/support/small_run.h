// A tiny run on text that the test writes itself: enough of everything to train, save and resume in milliseconds.
#pragma once

#include <fstream>
#include <string>
#include <vector>

#include "core/rng.h"
#include "tests/support/temp_dir.h"
#include "train/checkpoint.h"
#include "train/session.h"

namespace rowan::test {

// Words in a random order: letters follow each other with structure, so that a loss can fall.
inline std::string small_text(size_t words = 600) {
  const std::vector<std::string> vocabulary = {"the", "rowan", "tree", "has", "red", "berries",
                                               "and", "grey",  "bark", "in",  "a",   "glen"};
  std::string text;
  for (size_t i = 0; i < words; ++i) {
    text += vocabulary[random_below({.seed = 5, .purpose = Purpose::kTest}, i, vocabulary.size())];
    text += i % 9 == 8 ? ".\n" : " ";
  }
  return text;
}

inline std::string small_config(const std::string& text_path) {
  return R"([model]
d_model = 16
n_layer = 2
n_head = 2
max_seq_len = 12
tied = false
[data]
train = ")" +
         text_path + R"("
seq_len = 12
batch_size = 3
[train]
steps = 10
seed = 7
log_every = 1
[train.schedule]
kind = "cosine"
warmup = 3
decay_steps = 40
[optim]
rule = "adamw"
lr = 1e-2
weight_decay = 0.1
)";
}

class SmallRun {
 public:
  SmallRun() { std::ofstream(text_path(), std::ios::binary) << small_text(); }
  std::string text_path() const { return dir_.file("text.txt"); }
  std::string path(const std::string& name) const { return dir_.file(name); }
  Config config(const std::vector<std::string>& overrides = {}) const {
    return parse_config(small_config(text_path()), "small.toml", overrides);
  }

 private:
  TempDir dir_;
};

}  // namespace rowan::test
