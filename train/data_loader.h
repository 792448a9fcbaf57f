// DataLoader: batches for training. EvalBatches: a whole split, once.
//
// Sequences are numbered from 0 over the whole run. Which example sequence s is depends on (order, seed, s) alone:
//
//   shuffled    Epoch e = s / K goes once through all K = starts/stride (rounded up) examples that share no target, in an order
//               drawn from (seed, e). The fewer than T tokens of a text that don't fill an example are left out at its front and
//               end, at a place drawn for each epoch. The order is a permutation computed number by number, so it takes no memory
//               and seeking is free.
//   random      any start, drawn with replacement (what nanoGPT does)
//   sequential  example s % K, always from the front
//
// A batch is B consecutive sequences. So an epoch's last batch goes on into the next epoch, no sequence is dropped, the same
// sequences come whatever the accumulation, and the position is all the state there is.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/visit.h"
#include "train/examples.h"
#include "train/permutation.h"

namespace rowan {

struct Batch {
  Ids inputs;                   // (B,T)
  Ids targets;                  // (B,T), kIgnored where nothing counts
  std::vector<int64_t> starts;  // (B) the examples
};

enum class DataOrder { kShuffled, kRandom, kSequential };
DataOrder data_order(const std::string& name);  // "shuffled" | "random" | "sequential"; Error otherwise

class DataLoader {
 public:
  DataLoader(std::shared_ptr<const Examples> examples, int64_t batch_size, DataOrder order, uint64_t seed);

  Batch next();                                   // the batch at position(), which then moves on by batch_size
  Batch at(int64_t position) const;               // the batch whose first sequence has this number
  int64_t position() const { return position_; }  // sequences drawn so far
  void seek(int64_t position);
  int64_t sequences_per_epoch() const { return per_epoch_; }
  int64_t epoch() const { return position_ / per_epoch_; }  // complete ones
  int64_t batch_size() const { return batch_size_; }
  const Examples& examples() const { return *examples_; }

  // order, seed, position, epoch, seq_len and the data's fingerprint. Loading sets the position, and throws Error naming what
  // differs when the stream that was saved is not this one. batch_size may differ: positions count sequences.
  void visit_state(StateVisitor& v);

 private:
  // What depends on the epoch alone; made anew when a sequence of another epoch comes.
  struct Shuffle {
    int64_t epoch;
    int64_t phase;
    Permutation order;
  };
  int64_t start_of(int64_t sequence, std::optional<Shuffle>& shuffle) const;
  Batch read(int64_t position, std::optional<Shuffle>& shuffle) const;

  std::shared_ptr<const Examples> examples_;
  int64_t batch_size_;
  DataOrder order_;
  uint64_t seed_;
  int64_t per_epoch_;
  int64_t position_ = 0;
  std::optional<Shuffle> shuffle_;  // of next(); a cache, no state
  std::string fingerprint_;
};

// All targets of a split, each once, in order, or the first max_targets of them (0: all). Independent of any loader. The last batch
// may have fewer rows, and the last row ignored targets at its end.
class EvalBatches {
 public:
  EvalBatches(std::shared_ptr<const Examples> examples, int64_t batch_size, int64_t max_targets = 0);

  bool next(Batch& batch);  // false at the end
  int64_t batches() const;

 private:
  std::shared_ptr<const Examples> examples_;
  int64_t batch_size_, rows_, next_row_ = 0, left_;
};

}  // namespace rowan
