// ZipfConfig: [data.zipf], the settings of data.train = "builtin:zipf". What they mean exactly: train/zipf_data.h.
#pragma once

#include <cstdint>

#include "core/visit.h"

namespace rowan {

struct ZipfConfig {
  int64_t vocab_size = 1000;
  double exponent = 1;
  int64_t answers = 16;
  double noise = 0.1;
  int64_t sequences = 1 << 16;
  int64_t val_sequences = 256;
  double drift = 0;
  int64_t burst_every = 0;
  int64_t burst_length = 8;
  double burst_share = 0.2;
  int64_t seed = 1;

  void visit(FieldVisitor& v) {
    v("vocab_size", vocab_size, "ids (V); model.vocab_size = 0 takes it", between(2, 100000000));
    v("exponent", exponent, "the id of rank r comes with probability in proportion to r^-exponent (0: all alike)", between(0, 10));
    v("answers", answers, "an id's answer is one of the ids below this", between(2, 1 << 20));
    v("noise", noise, "share of targets that are drawn from all answers alike instead of being the id's own", from_below(0, 1));
    v("sequences", sequences, "examples in an epoch", between(1, int64_t{1} << 40));
    v("val_sequences", val_sequences, "examples that validate; they are no part of training", between(1, 1 << 24));
    v("drift", drift, "in 1000 sequences so many ids of the lowest ranks come in at the top, and the others fall by as many",
      at_least(0));
    v("burst_every", burst_every, "sequences from the start of one burst to the next (0: no bursts)", at_least(0));
    v("burst_length", burst_length, "sequences that a burst lasts", at_least(1));
    v("burst_share", burst_share, "share of the tokens in a burst that are its one rare id", between(0, 1));
    v("seed", seed, "seed of the ids, the answers and the noise; train.seed gives the order of the examples", at_least(0));
  }
};

}  // namespace rowan
