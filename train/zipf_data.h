// ZipfData: made-up data whose every answer is known, to measure what an optimizer makes of rows that are read often or seldom.
//
// A sequence is a row of independent ids; the target at each place is the answer to the id there, not the next id:
//
//   rank    r in 1..V with probability r^-s / sum k^-s                                              (s = exponent)
//   id      of rank r in sequence n: place(r - 1 - shift(n) mod V), shift(n) = floor(n * drift / 1000)
//           place(i) = i * P mod V with a prime P, so that neighbouring ranks do not lie in neighbouring rows
//   burst   in sequences n with n mod burst_every < burst_length an id is, with probability burst_share, the burst's own: one of
//           the lower half of the ranks, drawn for each burst
//   target  answer(id) with probability 1 - noise, else any of the A answers, all alike
//   answer  a function of (seed, id): one of 0..A-1
//
// So the best possible model is known: it gives the right answer 1 - noise + noise/A and each other one noise/A, for every id, and
// its loss is entropy(). For a table alone truth() gives each row a vector to find. Every number is a function of (seed, n, place):
// nothing of size V is stored, and any sequence can be asked for at any time. Validation draws from sequences that training never
// sees, without bursts, spread evenly over the time of an epoch.
//
// Not here: dependence between tokens, so attention has nothing to find.
#pragma once

#include <span>
#include <string>

#include "core/real.h"
#include "core/zipf.h"
#include "train/examples.h"
#include "train/zipf_config.h"

namespace rowan {

enum class ZipfSplit { kTrain, kVal };

class ZipfData {
 public:
  explicit ZipfData(const ZipfConfig& config);  // Error when answers exceed the vocabulary, or a burst is longer than its interval

  const ZipfConfig& config() const { return config_; }
  int32_t id(ZipfSplit split, int64_t sequence, int64_t place) const;
  int32_t target(ZipfSplit split, int64_t sequence, int64_t place, int32_t id) const;
  int32_t answer(int32_t id) const;

  // What is known: of targets, of ids in training at a time, of a table's rows.
  double target_probability(int32_t id, int32_t target) const;
  double entropy() const;  // nats a target: the lowest loss there is
  double probability(int64_t sequence, int32_t id) const;
  int64_t rank(int64_t sequence, int32_t id) const;   // from 1; bursts aside
  int32_t burst_id(int64_t sequence) const;           // -1: no burst
  void truth(int32_t id, std::span<Real> row) const;  // independent normal numbers of deviation 1

 private:
  int32_t id_of_rank(int64_t rank, int64_t sequence) const;
  int64_t shift(int64_t sequence) const;  // in [0, V)
  RandomKey key(uint32_t site, int64_t step) const;

  ZipfConfig config_;
  ZipfSampler ranks_;
  int64_t place_inverse_;
};

class ZipfExamples : public Examples {
 public:
  ZipfExamples(const ZipfConfig& config, int64_t seq_len, ZipfSplit split);

  const ZipfData& data() const { return data_; }
  int64_t seq_len() const override { return seq_len_; }
  int64_t starts() const override;
  int64_t stride() const override { return 1; }
  int64_t targets() const override { return starts() * seq_len_; }
  int64_t targets_per_row() const override { return seq_len_; }
  void read(int64_t start, std::span<int32_t> inputs, std::span<int32_t> out_targets) const override;
  std::string fingerprint() const override;

 private:
  ZipfData data_;
  int64_t seq_len_;
  ZipfSplit split_;
};

}  // namespace rowan
