// NegativeSampler: draws classes from a fixed distribution q over [0, V), for losses that look at some classes instead of all.
//
//   uniform      q(c) = 1 / V
//   log_uniform  q(c) = log((c + 2) / (c + 1)) / log(V + 1): Zipf's law for ids in the order of falling frequency, in closed form,
//   as
//                TensorFlow's log_uniform_candidate_sampler has it. Ids in another order (characters by code point) make it a poor
//                fit
//   weighted     q(c) = w(c) / sum of all w, by the alias method: two numbers a draw, O(V) memory. Walker, "An efficient method for
//                generating discrete random variables with general distributions", 1977; tables made as Vose, 1991
//
// Draws are with replacement and independent: a class may come several times, and in S draws it is expected S q(c) times. They are
// a pure function of (key, position), so that nothing has a state, and resuming or the number of threads change no draw.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/rng.h"

namespace rowan {

struct Negatives {
  std::vector<int32_t> ids;          // (S), may repeat
  std::vector<double> log_expected;  // (S), log(S q(id)): of how often the id is expected in the S draws
};

class NegativeSampler {
 public:
  static NegativeSampler uniform(int64_t classes);
  static NegativeSampler log_uniform(int64_t classes);
  // Weights of at least 0, not all of them 0. A class of weight 0 is never drawn.
  static NegativeSampler weighted(std::span<const double> weights);

  int64_t classes() const { return classes_; }  // V
  double probability(int32_t id) const;         // q(id)
  Negatives draw(int64_t count, const RandomKey& key) const;

 private:
  enum class Kind { kUniform, kLogUniform, kWeighted };
  NegativeSampler(Kind kind, int64_t classes);
  int32_t draw_one(const RandomKey& key, uint64_t number) const;
  void make_alias_table();

  Kind kind_;
  int64_t classes_;
  double log_range_ = 0;             // log(V + 1)
  std::vector<double> probability_;  // (V), weighted only
  std::vector<double> keep_;         // (V) a column gives its own class with this probability, else its alias
  std::vector<int32_t> alias_;       // (V)
};

}  // namespace rowan
