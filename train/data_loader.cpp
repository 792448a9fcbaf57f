#include "train/data_loader.h"

#include <algorithm>

#include "core/error.h"
#include "core/rng.h"
#include "train/counters.h"

namespace rowan {
namespace {

// Sites of Purpose::kDataOrder: what a number is drawn for. Part of what a checkpoint promises.
enum Site : uint32_t { kPermutation = 1, kRandomStart = 2, kPhase = 3 };

RandomKey order_key(uint64_t seed, Site site, uint64_t epoch) {
  return {.seed = seed, .purpose = Purpose::kDataOrder, .site = site, .step = epoch};
}

const char* name_of(DataOrder order) {
  return order == DataOrder::kShuffled ? "shuffled" : order == DataOrder::kRandom ? "random" : "sequential";
}

int64_t blocks(const Examples& e) {
  return (e.starts() - 1) / e.stride() + 1;
}

void read_rows(const Examples& examples, Batch& batch) {
  const int64_t rows = static_cast<int64_t>(batch.starts.size()), t = examples.seq_len();
  batch.inputs = Ids({rows, t});
  batch.targets = Ids({rows, t});
  for (int64_t b = 0; b < rows; ++b) {
    const size_t at = static_cast<size_t>(b * t), n = static_cast<size_t>(t);
    examples.read(batch.starts[static_cast<size_t>(b)], batch.inputs.values().subspan(at, n),
                  batch.targets.values().subspan(at, n));
  }
}

// A text that the checkpoint holds and that must be the same now.
void visit_fixed(StateVisitor& v, const std::string& name, const std::string& now, const char* hint) {
  std::vector<uint8_t> bytes(now.begin(), now.end());
  v(name, bytes);
  if (!v.loading()) return;
  const std::string saved(bytes.begin(), bytes.end());
  if (saved != now)
    throw Error(join_text("[data] the checkpoint was made with ", name, " ", saved, ", now it is ", now), ErrorKind::kData, hint);
}

}  // namespace

DataOrder data_order(const std::string& name) {
  for (DataOrder order : {DataOrder::kShuffled, DataOrder::kRandom, DataOrder::kSequential})
    if (name == name_of(order)) return order;
  fail("[data] expected order \"shuffled\", \"random\" or \"sequential\", got \"", name, "\"");
}

DataLoader::DataLoader(std::shared_ptr<const Examples> examples, int64_t batch_size, DataOrder order, uint64_t seed)
    : examples_(std::move(examples)),
      batch_size_(batch_size),
      order_(order),
      seed_(seed),
      per_epoch_(blocks(*examples_)),
      fingerprint_(examples_->fingerprint()) {
  ROWAN_CHECK(batch_size >= 1, "[data] expected batch_size >= 1, got ", batch_size);
}

int64_t DataLoader::start_of(int64_t sequence, std::optional<Shuffle>& shuffle) const {
  const int64_t stride = examples_->stride(), epoch = sequence / per_epoch_, index = sequence % per_epoch_;
  switch (order_) {
    case DataOrder::kRandom:
      return static_cast<int64_t>(random_below(order_key(seed_, kRandomStart, 0), static_cast<uint64_t>(sequence),
                                               static_cast<uint64_t>(examples_->starts())));
    case DataOrder::kSequential:
      return index * stride;
    case DataOrder::kShuffled:
      break;
  }
  if (!shuffle || shuffle->epoch != epoch) {
    const auto e = static_cast<uint64_t>(epoch);
    const int64_t slack = examples_->starts() - 1 - (per_epoch_ - 1) * stride;  // in [0, stride)
    const uint64_t phase = random_below(order_key(seed_, kPhase, e), 0, static_cast<uint64_t>(slack) + 1);
    shuffle.emplace(Shuffle{epoch, static_cast<int64_t>(phase), Permutation(per_epoch_, order_key(seed_, kPermutation, e))});
  }
  return shuffle->phase + stride * shuffle->order(index);
}

Batch DataLoader::read(int64_t position, std::optional<Shuffle>& shuffle) const {
  ROWAN_ASSERT(position >= 0);
  Batch batch;
  for (int64_t b = 0; b < batch_size_; ++b) batch.starts.push_back(start_of(position + b, shuffle));
  read_rows(*examples_, batch);
  return batch;
}

Batch DataLoader::at(int64_t position) const {
  std::optional<Shuffle> shuffle;
  return read(position, shuffle);
}

Batch DataLoader::next() {
  Batch batch = read(position_, shuffle_);
  position_ += batch_size_;
  return batch;
}

void DataLoader::seek(int64_t position) {
  ROWAN_CHECK(position >= 0, "[data] expected a position >= 0, got ", position);
  position_ = position;
}

void DataLoader::visit_state(StateVisitor& v) {
  visit_fixed(v, "fingerprint", fingerprint_, "resume with the same data; a copy elsewhere, or a token file made from it, will do");
  visit_fixed(v, "order", name_of(order_), "resume with the same data.order");
  visit_fixed(v, "seed", std::to_string(seed_), "resume with the same train.seed");
  visit_fixed(v, "seq_len", std::to_string(examples_->seq_len()), "resume with the same data.seq_len");
  int64_t position = position_, epochs = epoch();
  v("position", position);
  v("epoch", epochs);
  if (!v.loading()) return;
  if (position < 0 || position > kLargestCount || epochs != position / per_epoch_)
    fail_data("[data] the checkpoint's position ", position, " and epoch ", epochs, " do not agree: ", per_epoch_,
              " sequences make an epoch");
  position_ = position;
}

EvalBatches::EvalBatches(std::shared_ptr<const Examples> examples, int64_t batch_size, int64_t max_targets)
    : examples_(std::move(examples)), batch_size_(batch_size) {
  ROWAN_CHECK(batch_size >= 1, "[data] expected batch_size >= 1, got ", batch_size);
  ROWAN_CHECK(max_targets >= 0, "[data] expected eval_tokens >= 0, got ", max_targets);
  left_ = max_targets == 0 ? examples_->targets() : std::min(max_targets, examples_->targets());
  const int64_t per_row = examples_->targets_per_row();
  rows_ = (left_ + per_row - 1) / per_row;
}

int64_t EvalBatches::batches() const {
  return (rows_ + batch_size_ - 1) / batch_size_;
}

bool EvalBatches::next(Batch& batch) {
  const int64_t count = std::min(batch_size_, rows_ - next_row_);
  if (count <= 0) return false;
  batch.starts.clear();
  for (int64_t b = 0; b < count; ++b) batch.starts.push_back((next_row_ + b) * examples_->stride());
  read_rows(*examples_, batch);
  next_row_ += count;
  for (int32_t& target : batch.targets.values()) {
    if (target == kIgnored) continue;
    if (left_ > 0)
      --left_;
    else
      target = kIgnored;
  }
  return true;
}

}  // namespace rowan
