// Text from a model: a prompt, then token after token through the key/value cache, handed over as it is made.
//
// A model with learned positions can't look beyond max_seq_len. When the window is full, the last half of it is read again from
// position 0 and generation goes on from there; every model here does the same, since none was trained on longer sequences.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "layers/gpt.h"
#include "train/sampler.h"
#include "train/tokenizer.h"

namespace rowan {

struct GenerateOptions {
  int64_t tokens = 200;
  SamplerConfig sampler = {};
  std::vector<std::string> stop = {};  // ends the text, and is not shown

  void validate() const;  // Error for what can't be; generate() asks too
};

struct GenerateResult {
  std::vector<int32_t> ids;  // those made, without the prompt
  bool stopped = false;      // by a stop string
};

// emit() gets pieces of valid UTF-8; keep_going (when set) is asked before every token. Error for an empty prompt.
GenerateResult generate(Gpt& model, std::shared_ptr<const Tokenizer> tokenizer, std::string_view prompt,
                        const GenerateOptions& options, const std::function<void(std::string_view)>& emit,
                        const std::function<bool()>& keep_going = {});

}  // namespace rowan
