#include "train/builtin_data.h"

#include <algorithm>

#include "core/error.h"
#include "train/tokenizer_char.h"
#include "train/tokenizer_number.h"
#include "train/zipf_data.h"

namespace rowan {
namespace {

constexpr std::string_view kPrefix = "builtin:";
constexpr int kSortLetters = 3, kSortLength = 6;

}  // namespace

SortExamples::SortExamples(int letters, int length) : letters_(letters), length_(length) {
  ROWAN_CHECK(letters >= 1 && letters <= 26 && length >= 1, "[data] cannot sort ", length, " of ", letters, " letters");
  for (int i = 0; i < length; ++i) {
    count_ *= letters;
    ROWAN_CHECK(count_ <= 1 << 20, "[data] sorting ", length, " of ", letters, " letters has more than ", 1 << 20, " inputs");
  }
}

void SortExamples::read(int64_t start, std::span<int32_t> inputs, std::span<int32_t> out_targets) const {
  ROWAN_ASSERT(start >= 0 && start < count_);
  std::vector<int32_t> letters(static_cast<size_t>(length_));
  for (size_t i = letters.size(); i-- > 0; start /= letters_) letters[i] = static_cast<int32_t>(start % letters_);
  std::vector<int32_t> line = letters;
  std::sort(letters.begin(), letters.end());
  line.insert(line.end(), letters.begin(), letters.end());
  std::copy(line.begin(), line.end() - 1, inputs.begin());
  std::copy(line.begin() + 1, line.end(), out_targets.begin());
  std::fill_n(out_targets.begin(), length_ - 1, kIgnored);  // the unsorted half can't be known
}

std::string SortExamples::fingerprint() const {
  return join_text("builtin:sort letters=", letters_, " length=", length_);
}

std::string builtin_of(const DataConfig& config) {
  return !config.train.empty() && is_builtin(config.train[0]) ? config.train[0] : "";
}

bool is_builtin(const std::string& path) {
  return path.compare(0, kPrefix.size(), kPrefix) == 0;
}

namespace {

BuiltinData make_sort(const std::string& path, int64_t seq_len) {
  auto examples = std::make_shared<SortExamples>(kSortLetters, kSortLength);
  if (seq_len != examples->seq_len())
    throw Error(join_text("[data] ", path, " has sequences of ", examples->seq_len(), ", but data.seq_len is ", seq_len),
                ErrorKind::kUsage, join_text("set data.seq_len = ", examples->seq_len()));
  std::vector<char32_t> alphabet;
  for (int i = 0; i < kSortLetters; ++i) alphabet.push_back(U'A' + static_cast<char32_t>(i));
  return {std::make_shared<CharTokenizer>(alphabet), examples, examples};
}

BuiltinData make_zipf(const DataConfig& config) {
  const ZipfConfig& zipf = config.zipf;
  if ((zipf.drift > 0 || zipf.burst_every > 0) && config.order != "sequential")
    throw Error(join_text("[data] data.zipf.", zipf.drift > 0 ? "drift" : "burst_every", " changes the data from one sequence to ",
                          "the next, but data.order = \"", config.order, "\" does not follow their order"),
                ErrorKind::kUsage, "set data.order = \"sequential\"");
  return {std::make_shared<NumberTokenizer>(zipf.vocab_size),
          std::make_shared<ZipfExamples>(zipf, config.seq_len, ZipfSplit::kTrain),
          std::make_shared<ZipfExamples>(zipf, config.seq_len, ZipfSplit::kVal)};
}

}  // namespace

BuiltinData make_builtin(const std::string& path, const DataConfig& config) {
  if (path == "builtin:zipf") return make_zipf(config);
  if (path == "builtin:sort") return make_sort(path, config.seq_len);
  fail("[data] there is no '", path, "'; built in: builtin:sort, builtin:zipf");
}

int64_t rows_all_correct(const Batch& batch, const Tensor& logits) {
  const int64_t rows = batch.targets.shape()[0], t = batch.targets.shape()[1];
  ROWAN_CHECK(logits.shape().rank() == 3 && logits.shape().rows() == rows * t, "[data] expected logits (", rows, ", ", t,
              ", V), got ", logits.shape());
  int64_t correct = 0;
  for (int64_t b = 0; b < rows; ++b) {
    bool all = true;
    for (int64_t i = b * t; i < (b + 1) * t && all; ++i) {
      if (batch.targets[i] == kIgnored) continue;
      const auto row = logits.row(i);
      all = std::max_element(row.begin(), row.end()) - row.begin() == batch.targets[i];
    }
    correct += all;
  }
  return correct;
}

}  // namespace rowan
