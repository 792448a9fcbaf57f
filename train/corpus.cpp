#include "train/corpus.h"

#include <algorithm>

#include "core/error.h"
#include "train/builtin_data.h"
#include "train/file.h"
#include "train/text_file.h"
#include "train/token_file.h"
#include "train/tokenizer_byte.h"
#include "train/tokenizer_char.h"

namespace rowan {
namespace {

std::string quoted(const std::vector<std::string>& paths) {
  return "'" + paths.front() + "'" + (paths.size() > 1 ? join_text(" and ", paths.size() - 1, " more") : "");
}

std::shared_ptr<const Tokenizer> char_tokenizer_of(const std::vector<std::string>& texts) {
  CharacterSet set;
  int64_t bytes = 0;
  for (const std::string& path : texts)
    bytes += read_pieces(path, [&](std::string_view text, int64_t at) {
      set.add(text, {.name = "'" + path + "'", .offset = static_cast<uint64_t>(at)});
    });
  if (bytes == 0) fail_data("[data] ", quoted(texts), " is empty: there is no character to make a vocabulary of");
  return std::make_shared<CharTokenizer>(set.sorted());
}

std::shared_ptr<const Tokens> encode_texts(const std::vector<std::string>& texts, const Tokenizer& tokenizer) {
  auto tokens = std::make_shared<PackedTokens>(tokenizer.vocab_size(), tokenizer.hash());
  encode_pieces(texts, tokenizer, [&](std::span<const int32_t> ids, int64_t) { tokens->append(ids); });
  return tokens;
}

// Token files are told from texts by their first bytes; the two are not mixed, since their vocabularies have different origins.
bool all_token_files(const std::vector<std::string>& paths) {
  size_t count = 0;
  for (const std::string& path : paths) count += is_token_file(path);
  ROWAN_CHECK(count == 0 || count == paths.size(), "[data] ", quoted(paths), ": texts and token files can't be mixed in one list");
  return count > 0;
}

void check_same_tokenizer(const std::string& path, const Tokenizer& data, const Tokenizer& model, const char* hint) {
  if (data.hash() == model.hash()) return;
  throw Error(join_text("[data] '", path, "' was made with another tokenizer (", data.kind(), ", ", data.vocab_size(),
                        " ids) than this model's (", model.kind(), ", ", model.vocab_size(), " ids)"),
              ErrorKind::kData, hint);
}

std::shared_ptr<const Tokens> open_token_files(const std::vector<std::string>& paths, std::shared_ptr<const Tokenizer>& tokenizer) {
  std::vector<std::shared_ptr<const Tokens>> parts;
  for (const std::string& path : paths) {
    auto file = std::make_shared<TokenFile>(path);
    if (!tokenizer) tokenizer = file->tokenizer();
    check_same_tokenizer(path, *file->tokenizer(), *tokenizer,
                         "make it again with rowan prepare --tokenizer and the model's tokenizer.json");
    parts.push_back(std::move(file));
  }
  return std::make_shared<TokenChain>(std::move(parts));
}

// Paths of a field in which "" means none.
std::vector<std::string> given(const std::vector<std::string>& paths) {
  std::vector<std::string> out;
  std::copy_if(paths.begin(), paths.end(), std::back_inserter(out), [](const std::string& p) { return !p.empty(); });
  return out;
}

std::shared_ptr<const Tokens> open_tokens(const std::vector<std::string>& paths, const std::string& kind,
                                          std::shared_ptr<const Tokenizer>& tokenizer) {
  if (all_token_files(paths)) return open_token_files(paths, tokenizer);
  if (!tokenizer) tokenizer = open_tokenizer(kind, paths);
  return encode_texts(paths, *tokenizer);
}

BuiltinData open_builtin(const std::vector<std::string>& paths, const DataConfig& config, const Tokenizer* tokenizer) {
  ROWAN_CHECK(paths.size() == 1, "[data] ", quoted(paths), ": built-in data stands alone in its list");
  BuiltinData data = make_builtin(paths[0], config);
  if (tokenizer) check_same_tokenizer(paths[0], *data.tokenizer, *tokenizer, "use the data that the model was trained on");
  return data;
}

}  // namespace

int64_t encode_pieces(const std::vector<std::string>& texts, const Tokenizer& tokenizer,
                      const std::function<void(std::span<const int32_t> ids, int64_t bytes)>& take) {
  std::vector<int32_t> ids;
  int64_t total = 0;
  for (const std::string& path : texts)
    total += read_pieces(path, [&](std::string_view text, int64_t at) {
      ids.clear();
      tokenizer.encode(text, {.name = "'" + path + "'", .offset = static_cast<uint64_t>(at)}, ids);
      take(ids, static_cast<int64_t>(text.size()));
    });
  return total;
}

std::shared_ptr<const Tokenizer> open_tokenizer(const std::string& kind_or_path, const std::vector<std::string>& texts) {
  if (kind_or_path == "byte") return std::make_shared<ByteTokenizer>();
  if (kind_or_path == "char") return char_tokenizer_of(texts);
  constexpr int64_t kLargest = 64 << 20;
  ROWAN_CHECK(file_exists(kind_or_path), "[data] expected tokenizer \"char\", \"byte\" or the path of a saved tokenizer, got \"",
              kind_or_path, "\", and there is no such file");
  if (is_token_file(kind_or_path)) return TokenFile(kind_or_path).tokenizer();
  return Tokenizer::deserialize(read_text(kind_or_path, kLargest), "'" + kind_or_path + "'");
}

std::shared_ptr<const Examples> open_split(const std::vector<std::string>& paths, std::shared_ptr<const Tokenizer> tokenizer,
                                           const DataConfig& config, const std::string& what) {
  ROWAN_ASSERT(tokenizer);
  ROWAN_CHECK(!paths.empty(), "[data] no file is given for ", what);
  if (std::any_of(paths.begin(), paths.end(), is_builtin)) return open_builtin(paths, config, tokenizer.get()).val;
  return std::make_shared<TextExamples>(open_tokens(paths, "", tokenizer), config.seq_len, what + " (" + quoted(paths) + ")", true);
}

Corpus open_corpus(const DataConfig& config, std::shared_ptr<const Tokenizer> tokenizer) {
  const std::vector<std::string> train = given(config.train), val = given(config.val);
  ROWAN_CHECK(!train.empty(),
              "[data] data.train is not set: expected the path of a text or token file, \"builtin:sort\" or \"builtin:zipf\"");
  if (std::any_of(train.begin(), train.end(), is_builtin)) {
    ROWAN_CHECK(val.empty(), "[data] ", train[0], " brings its own validation: leave data.val empty");
    const BuiltinData data = open_builtin(train, config, tokenizer.get());
    return {data.tokenizer, data.train, data.val};
  }

  std::shared_ptr<const Tokens> all = open_tokens(train, config.tokenizer, tokenizer);
  const std::string name = quoted(train);
  Corpus corpus;
  corpus.tokenizer = tokenizer;
  int64_t train_tokens = all->size();
  if (val.empty() && config.val_fraction > 0) {
    train_tokens = static_cast<int64_t>(static_cast<double>(all->size()) * (1 - config.val_fraction));
    auto rest = std::make_shared<TokenSlice>(all, train_tokens, all->size());
    all = std::make_shared<TokenSlice>(all, 0, train_tokens);
    corpus.train = std::make_shared<TextExamples>(all, config.seq_len, join_text("the training part of ", name), false);
    corpus.val = std::make_shared<TextExamples>(rest, config.seq_len, join_text("the validating part of ", name), true);
    return corpus;
  }
  corpus.train = std::make_shared<TextExamples>(all, config.seq_len, name);
  if (!val.empty()) corpus.val = open_split(val, tokenizer, config, "data.val");
  return corpus;
}

}  // namespace rowan
