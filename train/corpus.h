// Corpus: the data of a run as the [data] table describes it: text files, prepared token files (told apart by what they begin
// with) or built-in data, encoded and split.
//
// Several files are one running text, in the order given. With val = "", the last val_fraction of the tokens validates: the first
// floor(n * (1 - val_fraction)) train, as in nanoGPT. The char vocabulary is that of all train files, the validating part included.
// A text is kept in memory as packed ids (1 byte a character for up to 256 different ones), never as a whole text; a token
// file stays on disk. Not here: shuffling (DataLoader), documents and their separators, decompression.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "train/config.h"
#include "train/examples.h"
#include "train/tokenizer.h"

namespace rowan {

struct Corpus {
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<const Examples> train;
  std::shared_ptr<const Examples> val;  // null: nothing validates (val = "" and val_fraction = 0)
};

// `tokenizer`: that of the checkpoint when a run is resumed, else null, and config.tokenizer says which one.
// Errors (data): unreadable, a directory, empty, too short (with both numbers), not UTF-8, a character outside the vocabulary, a
// token file made with another tokenizer.
Corpus open_corpus(const DataConfig& config, std::shared_ptr<const Tokenizer> tokenizer = nullptr);

// What an evaluation of other data needs: files encoded with a given tokenizer, in windows of config.seq_len, or the validating
// part of built-in data.
std::shared_ptr<const Examples> open_split(const std::vector<std::string>& paths, std::shared_ptr<const Tokenizer> tokenizer,
                                           const DataConfig& config, const std::string& what);

// kind_or_path: "char", "byte", or the path of a tokenizer.json or of a token file, which holds its tokenizer. `texts` give char
// its vocabulary.
std::shared_ptr<const Tokenizer> open_tokenizer(const std::string& kind_or_path, const std::vector<std::string>& texts);

// Encodes texts of any length in pieces, in bounded memory: take(ids, bytes they stand for). Returns the bytes of all texts.
int64_t encode_pieces(const std::vector<std::string>& texts, const Tokenizer& tokenizer,
                      const std::function<void(std::span<const int32_t> ids, int64_t bytes)>& take);

}  // namespace rowan
