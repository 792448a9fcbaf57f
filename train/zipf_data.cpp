#include "train/zipf_data.h"

#include <cmath>

#include "core/error.h"

namespace rowan {
namespace {

// Sites of Purpose::kSyntheticData: what a number is drawn for. Part of what a checkpoint promises.
enum Site : uint32_t { kTrainRank = 1, kValRank, kTrainNoise, kValNoise, kBurst, kBurstRank, kAnswer, kTruth };

constexpr int64_t kPrime = 2654435761;  // above every vocabulary, so it has an inverse modulo each

// The x in [0, n) with kPrime * x = 1 modulo n, by Euclid's algorithm.
int64_t inverse_of_prime(int64_t n) {
  int64_t a = n, b = kPrime % n, x = 0, next = 1;
  while (b != 0) {
    const int64_t q = a / b, rest = a % b, after = x - q * next;
    a = b;
    b = rest;
    x = next;
    next = after;
  }
  return (x % n + n) % n;
}

uint64_t number_at(int64_t place) {
  return static_cast<uint64_t>(place);
}

}  // namespace

ZipfData::ZipfData(const ZipfConfig& config)
    : config_(config), ranks_(config.vocab_size, config.exponent), place_inverse_(inverse_of_prime(config.vocab_size)) {
  ROWAN_CHECK(config.answers <= config.vocab_size, "[data.zipf] answers = ", config.answers, " of a vocabulary of ",
              config.vocab_size, ": an answer is an id, so there can't be more answers than ids");
  ROWAN_CHECK(config.burst_every == 0 || config.burst_length <= config.burst_every,
              "[data.zipf] burst_length = ", config.burst_length, " is longer than burst_every = ", config.burst_every,
              ": bursts do not overlap");
}

RandomKey ZipfData::key(uint32_t site, int64_t step) const {
  return {.seed = static_cast<uint64_t>(config_.seed),
          .purpose = Purpose::kSyntheticData,
          .site = site,
          .step = static_cast<uint64_t>(step)};
}

int64_t ZipfData::shift(int64_t sequence) const {
  return static_cast<int64_t>(
      std::fmod(std::floor(static_cast<double>(sequence) * config_.drift / 1000), static_cast<double>(config_.vocab_size)));
}

int32_t ZipfData::id_of_rank(int64_t rank, int64_t sequence) const {
  const int64_t v = config_.vocab_size, item = (rank - 1 - shift(sequence) + v) % v;
  return static_cast<int32_t>(item * (kPrime % v) % v);  // below 10^16
}

int64_t ZipfData::rank(int64_t sequence, int32_t id) const {
  const int64_t v = config_.vocab_size;
  return (id * place_inverse_ % v + shift(sequence)) % v + 1;
}

int32_t ZipfData::burst_id(int64_t sequence) const {
  if (config_.burst_every == 0 || sequence % config_.burst_every >= config_.burst_length) return -1;
  const int64_t first = sequence / config_.burst_every * config_.burst_every, lower = (config_.vocab_size + 1) / 2;
  const uint64_t below = random_below(key(kBurstRank, first), 0, static_cast<uint64_t>(config_.vocab_size - lower));
  return id_of_rank(lower + 1 + static_cast<int64_t>(below), first);
}

int32_t ZipfData::id(ZipfSplit split, int64_t sequence, int64_t place) const {
  if (split == ZipfSplit::kVal) {
    const double share = static_cast<double>(sequence) / static_cast<double>(config_.val_sequences);
    return id_of_rank(ranks_.rank(key(kValRank, sequence), number_at(place)),
                      static_cast<int64_t>(share * static_cast<double>(config_.sequences)));
  }
  const int32_t hot = burst_id(sequence);
  if (hot >= 0 && random_uniform(key(kBurst, sequence), number_at(place)) < config_.burst_share) return hot;
  return id_of_rank(ranks_.rank(key(kTrainRank, sequence), number_at(place)), sequence);
}

int32_t ZipfData::answer(int32_t id) const {
  return static_cast<int32_t>(random_below(key(kAnswer, 0), static_cast<uint64_t>(id), static_cast<uint64_t>(config_.answers)));
}

int32_t ZipfData::target(ZipfSplit split, int64_t sequence, int64_t place, int32_t id) const {
  const RandomKey noise = key(split == ZipfSplit::kVal ? kValNoise : kTrainNoise, sequence);
  if (random_uniform(noise, 2 * number_at(place)) >= config_.noise) return answer(id);
  return static_cast<int32_t>(random_below(noise, 2 * number_at(place) + 1, static_cast<uint64_t>(config_.answers)));
}

double ZipfData::target_probability(int32_t id, int32_t target) const {
  if (target < 0 || target >= config_.answers) return 0;
  const double any = config_.noise / static_cast<double>(config_.answers);
  return target == answer(id) ? 1 - config_.noise + any : any;
}

double ZipfData::entropy() const {
  const auto count = static_cast<double>(config_.answers);
  const double any = config_.noise / count, right = 1 - config_.noise + any;
  return -right * std::log(right) - (any > 0 ? (count - 1) * any * std::log(any) : 0);
}

double ZipfData::probability(int64_t sequence, int32_t id) const {
  const double plain = ranks_.probability(rank(sequence, id));
  const int32_t hot = burst_id(sequence);
  if (hot < 0) return plain;
  return (1 - config_.burst_share) * plain + (id == hot ? config_.burst_share : 0);
}

void ZipfData::truth(int32_t id, std::span<Real> row) const {
  for (size_t j = 0; j < row.size(); ++j) row[j] = static_cast<Real>(random_normal(key(kTruth, id), j));
}

ZipfExamples::ZipfExamples(const ZipfConfig& config, int64_t seq_len, ZipfSplit split)
    : data_(config), seq_len_(seq_len), split_(split) {
  ROWAN_CHECK(seq_len >= 1, "[data] expected seq_len >= 1, got ", seq_len);
}

int64_t ZipfExamples::starts() const {
  return split_ == ZipfSplit::kTrain ? data_.config().sequences : data_.config().val_sequences;
}

void ZipfExamples::read(int64_t start, std::span<int32_t> inputs, std::span<int32_t> out_targets) const {
  ROWAN_ASSERT(start >= 0 && start < starts());
  for (size_t t = 0; t < inputs.size(); ++t) {
    const auto place = static_cast<int64_t>(t);
    inputs[t] = data_.id(split_, start, place);
    out_targets[t] = data_.target(split_, start, place, inputs[t]);
  }
}

std::string ZipfExamples::fingerprint() const {
  const ZipfConfig& c = data_.config();
  return join_text("builtin:zipf ", split_ == ZipfSplit::kTrain ? "train" : "val", " vocab_size=", c.vocab_size,
                   " exponent=", c.exponent, " answers=", c.answers, " noise=", c.noise, " sequences=", c.sequences,
                   " val_sequences=", c.val_sequences, " drift=", c.drift, " burst_every=", c.burst_every,
                   " burst_length=", c.burst_length, " burst_share=", c.burst_share, " seed=", c.seed);
}

}  // namespace rowan
