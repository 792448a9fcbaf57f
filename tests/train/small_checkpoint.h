// A small state with one entry of every kind, for tests of checkpoints.
#pragma once

#include <string>
#include <vector>

#include "train/checkpoint.h"

namespace rowan::test {

struct SmallState {
  Tensor weight = Tensor::from({2, 3}, std::vector<Real>{1, -2, 3, Real(0.25), 5, -6});
  Tensor empty = Tensor::zeros({0, 4});
  int64_t step = 7;
  double best = 1.5;
  std::vector<int32_t> seen = {1, -1};
  std::vector<int64_t> steps = {3, int64_t{1} << 40};
  std::vector<double> history = {};
  std::vector<uint8_t> blob = {0, 255, 10};
  std::string config = "[model]\nd_model = 8 # Größe\n";

  void write(CheckpointWriter& w) const {
    w.add_text("/config", config);
    w.add("/model/blocks.0.attn.qkv.weight", weight);
    w.add("/model/empty", empty);
    w.add("/optim/blocks.0.attn.qkv.weight/m", weight);
    w.add("/train/step", step);
    w.add("/train/best_loss", best);
    w.add("/rng/seen", seen);
    w.add("/loader/steps", steps);
    w.add("/train/history", history);
    w.add("/tokenizer/data", blob);
    w.add_text("/train/note", "");
  }
  CheckpointImage image(const std::string& created = "2025-01-31T00:00:00Z") const {
    CheckpointWriter w;
    write(w);
    return w.build({.created = created, .rowan_version = "1.2.3", .complete = true});
  }
};

inline CheckpointImage small_image(int64_t step, double best = 1.5) {
  SmallState state;
  state.step = step;
  state.best = best;
  return state.image();
}

}  // namespace rowan::test
