// Files of a tiny comparison: a base config over builtin:zipf that trains in milliseconds, and a sweep that the test completes.
#pragma once

#include <fstream>
#include <string>

#include "tests/support/temp_dir.h"

namespace rowan::test {

inline constexpr const char* kSmallSweepBase = R"([model]
d_model = 8
n_layer = 1
n_head = 2
max_seq_len = 8
tied = false
[data]
train = "builtin:zipf"
seq_len = 8
batch_size = 4
[data.zipf]
vocab_size = 400
answers = 4
sequences = 400
val_sequences = 16
[train]
steps = 30
log_every = 5
eval_every = 10
threads = 1
[train.schedule]
kind = "constant"
[optim]
lr = 1e-2
[[optim.group]]
params = "embed.tokens.weight"
rule = "sparse_adam"
)";

class SmallSweep {
 public:
  SmallSweep() { std::ofstream(path("base.toml")) << kSmallSweepBase; }

  std::string path(const std::string& name) const { return dir_.file(name); }
  // Line 1 is the base; `top` follows, then seeds and a grid unless the test brings its own, then `rest`.
  std::string write(const std::string& top, const std::string& rest, bool grid = true, bool seeds = true) const {
    std::string text = "base = \"base.toml\"\n" + top;
    if (seeds) text += "seeds = [1, 2]\n";
    if (grid) text += "grid = { \"optim.group.0.lr\" = [1e-3, 1e-2, 3.0] }\n";
    std::ofstream(path("sweep.toml")) << text << rest;
    return path("sweep.toml");
  }
  std::string write(const std::string& rest) const { return write("", rest); }

 private:
  TempDir dir_;
};

}  // namespace rowan::test
