#include "tools/bench_config.h"

#include <fmt/format.h>

#include <algorithm>

#include "train/plan.h"

namespace rowan::tools {
namespace {

// The characters of Shakespeare's works, as in the models that character-level trainers are compared by.
constexpr int64_t kUsualCharacters = 65;

}  // namespace

Config bench_config(const std::string& path, const std::vector<std::string>& overrides) {
  Config config = load_config(path, overrides);
  const auto given = [](const std::string& file) { return !file.empty(); };
  const bool data = std::any_of(config.data.train.begin(), config.data.train.end(), given);
  if (config.model.vocab_size == 0 && config.data.tokenizer == "char" && !data) {
    config.model.vocab_size = kUsualCharacters;
    fmt::print(stderr,
               "rowan: note: no text is given: a vocabulary of {} characters is taken (--set model.vocab_size=N for another)\n",
               kUsualCharacters);
  }
  return with_known_vocabulary(config);
}

}  // namespace rowan::tools
