// StepProfile: where the time of training steps goes, by op, forward and backward.
//
// FLOPs are those that an op's formula needs: attention is counted without what the causal mask hides, and its backward with the
// scores made again. Bytes are those of inputs and results, each read or written once; a rate above the copy rate means that they
// stayed in the caches. The head makes its gradients in forward, and is counted there.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "core/tape_observer.h"

namespace rowan {

struct OpTime {
  std::string op;    // "linear (768,3072)" with the shape of its weight; "update"
  std::string pass;  // "forward", "backward" or ""
  int64_t calls = 0;
  double seconds = 0, flops = 0, bytes = 0;
};

class StepProfile final : public TapeObserver {
 public:
  explicit StepProfile(int64_t negatives = 0) : negatives_(negatives) {}  // classes drawn for a sampled head

  void start() { last_ = Clock::now(); }  // forgets the time since the last op
  void op_done(const OpDone& done) override;
  void part_done(const std::string& name, double bytes);  // the time since the last op was that of `name`
  std::vector<OpTime> by_time() const;                    // longest first

 private:
  using Clock = std::chrono::steady_clock;
  OpTime& entry(const std::string& op, const std::string& pass);

  int64_t negatives_;
  Clock::time_point last_ = Clock::now();
  std::map<std::string, OpTime> entries_;
};

}  // namespace rowan
