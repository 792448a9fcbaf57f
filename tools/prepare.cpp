// rowan prepare: texts to one token file.
#include <fmt/format.h>

#include <memory>

#include "core/error.h"
#include "tools/command.h"
#include "tools/output.h"
#include "train/corpus.h"
#include "train/file.h"
#include "train/token_file_writer.h"

namespace rowan::tools {
namespace {

struct PrepareOptions {
  std::vector<std::string> inputs;
  std::string out;
  std::string tokenizer = "char";
  bool overwrite = false;
};

// Replacing is for token files: a slip of the name must not cost a text, and a device is no file at all.
void check_place(const PrepareOptions& options) {
  if (!options.overwrite || !file_exists(options.out) || is_token_file(options.out)) return;
  throw Error("[prepare] '" + options.out + "' is not a token file, and --overwrite replaces nothing else", ErrorKind::kUsage,
              "choose another name with --out");
}

void run_prepare(const PrepareOptions& options) {
  check_place(options);
  for (const std::string& input : options.inputs) {
    ROWAN_CHECK(!is_token_file(input), "[prepare] '", input, "' is a token file already; a text was expected");
  }
  const auto tokenizer = open_tokenizer(options.tokenizer, options.inputs);
  TokenFileWriter writer(options.out, *tokenizer, options.overwrite ? IfExists::kReplace : IfExists::kRefuse);
  int64_t tokens = 0;
  const int64_t bytes = encode_pieces(options.inputs, *tokenizer, [&](std::span<const int32_t> ids, int64_t piece_bytes) {
    tokens += static_cast<int64_t>(ids.size());
    writer.append(ids, piece_bytes);
  });
  if (tokens == 0) fail_data("[prepare] '", options.inputs.front(), "' is empty: there is nothing to write");
  writer.publish();
  print("{}: {} tokens of {} byte{} from {} bytes of text; {} tokenizer, {} ids\n", options.out, tokens,
        bytes_per_token(tokenizer->vocab_size()), tokenizer->vocab_size() > 256 ? "s" : "", bytes, tokenizer->kind(),
        tokenizer->vocab_size());
}

void add_prepare_command(CLI::App& app) {
  auto options = std::make_shared<PrepareOptions>();
  CLI::App* command = app.add_subcommand("prepare", "Encode texts into a token file, for data that is large or used often");
  command->add_option("inputs", options->inputs, "Texts; several are one running text")->required()->type_name("FILE");
  command->add_option("--out,-o", options->out, "The token file to write")->required()->type_name("FILE");
  command
      ->add_option("--tokenizer", options->tokenizer,
                   "char (the characters of the texts), byte, or the path of a tokenizer.json or token file")
      ->capture_default_str();
  command->add_flag("--overwrite", options->overwrite, "Replace an existing token file");
  command->callback([options] { run_prepare(*options); });
}
ROWAN_COMMAND(add_prepare_command);

}  // namespace
}  // namespace rowan::tools
