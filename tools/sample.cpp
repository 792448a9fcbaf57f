// rowan sample: text from a checkpoint, streamed to stdout as it is made.
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>

#include "core/parallel.h"
#include "tools/command.h"
#include "tools/training.h"
#include "train/generate.h"

namespace rowan::tools {
namespace {

struct SampleOptions {
  std::string path;
  std::optional<std::string> prompt;
  GenerateOptions generate;
  int64_t threads = 0;
};

void write_now(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return;
  fail_data("[sample] the text could not be written to stdout: ", std::strerror(errno));
}

void run_sample(const SampleOptions& o) {
  const Threads threads(thread_count(o.threads));
  Checkpoint checkpoint = open_checkpoint(o.path);
  const LoadedModel loaded = load_model(checkpoint);
  const std::string prompt = o.prompt.value_or(loaded.config.train.sample_prompt);
  // Settings and prompt are checked before anything is shown.
  o.generate.validate();
  ROWAN_CHECK(!prompt.empty(), "[sample] the prompt is empty; give at least one character to continue");
  loaded.tokenizer->encode(prompt, {.name = "the prompt", .is_prompt = true});
  write_now(prompt);
  generate(*loaded.model, loaded.tokenizer, prompt, o.generate, write_now);
  write_now("\n");
}

void add_sample_command(CLI::App& app) {
  auto o = std::make_shared<SampleOptions>();
  CLI::App* command = app.add_subcommand("sample", "Generate text from a checkpoint");
  GenerateOptions& g = o->generate;
  command->add_option("checkpoint", o->path, "Checkpoint, or the directory of a run (its newest)")
      ->required()
      ->type_name("CKPT|DIR");
  command->add_option("--prompt", o->prompt, "Text to continue (default: the config's train.sample_prompt)")->type_name("TEXT");
  command->add_option("--tokens", g.tokens, "Tokens to make (default 200)")->check(CLI::NonNegativeNumber);
  command->add_option("--temperature", g.sampler.temperature, "Divides the logits; 0 always takes the most likely (default 1)");
  command->add_option("--top-k", g.sampler.top_k, "Keep the K most likely tokens (0: all)");
  command->add_option("--top-p", g.sampler.top_p, "Keep the fewest tokens whose probabilities reach P");
  command->add_option("--min-p", g.sampler.min_p, "Drop tokens less likely than P times the most likely");
  command->add_option("--repetition-penalty", g.sampler.repetition_penalty,
                      "Above 1: tokens that stand in the text get less likely");
  command->add_option("--stop", g.stop, "End before this text (repeatable)")->type_name("TEXT")->allow_extra_args(false);
  command->add_option("--seed", g.sampler.seed, "Seed of the random choices (default 1)");
  command->add_option("--threads", o->threads, "Threads (0: the physical cores)")->check(CLI::Range(0, 1024));
  command->callback([o] { run_sample(*o); });
}
ROWAN_COMMAND(add_sample_command);

}  // namespace
}  // namespace rowan::tools
