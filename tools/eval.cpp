// rowan eval: loss, perplexity and bits per byte of a checkpoint over a whole split or over a file.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "core/parallel.h"
#include "tools/command.h"
#include "tools/training.h"
#include "train/evaluate.h"

namespace rowan::tools {
namespace {

struct EvalOptions {
  std::string path;
  std::vector<std::string> data;
  int64_t threads = 0;
  bool json = false;
};

std::shared_ptr<const Examples> split_of(const EvalOptions& o, const LoadedModel& loaded) {
  const DataConfig& data = loaded.config.data;
  if (!o.data.empty()) return open_split(o.data, loaded.tokenizer, data, "--data");
  const Corpus corpus = open_corpus(data, loaded.tokenizer);
  if (corpus.val == nullptr)
    throw Error("[eval] the run has no validation split (data.val is empty and val_fraction is 0)", ErrorKind::kUsage,
                "name a file with --data");
  return corpus.val;
}

void run_eval(const EvalOptions& o) {
  const Threads threads(thread_count(o.threads));
  Checkpoint checkpoint = open_checkpoint(o.path);
  const LoadedModel loaded = load_model(checkpoint);
  const EvalResult r = evaluate(*loaded.model, split_of(o, loaded), *loaded.tokenizer, loaded.config.data.batch_size);
  if (o.json) {
    const nlohmann::ordered_json out{
        {"checkpoint", checkpoint.path()},  {"step", loaded.step}, {"loss", r.loss},  {"perplexity", r.perplexity},
        {"bits_per_byte", r.bits_per_byte}, {"tokens", r.tokens},  {"bytes", r.bytes}};
    fmt::print("{}\n", out.dump());
    return;
  }
  fmt::print("checkpoint     {} (step {})\n", checkpoint.path(), loaded.step);
  fmt::print("loss           {:.6f} nats/token\nperplexity     {:.4f}\nbits per byte  {:.6f}\n", r.loss, r.perplexity,
             r.bits_per_byte);
  fmt::print("tokens         {} ({} bytes of text)\n", r.tokens, r.bytes);
}

void add_eval_command(CLI::App& app) {
  auto o = std::make_shared<EvalOptions>();
  CLI::App* command = app.add_subcommand("eval", "Loss, perplexity and bits per byte over a whole split");
  command->add_option("checkpoint", o->path, "Checkpoint, or the directory of a run (its newest)")
      ->required()
      ->type_name("CKPT|DIR");
  command->add_option("--data", o->data, "Text or token file to evaluate on (default: the run's validation split)")
      ->type_name("FILE")
      ->allow_extra_args(false);
  command->add_option("--threads", o->threads, "Threads (0: the physical cores)")->check(CLI::Range(0, 1024));
  command->add_flag("--json", o->json, "One JSON object on stdout");
  command->callback([o] { run_eval(*o); });
}
ROWAN_COMMAND(add_eval_command);

}  // namespace
}  // namespace rowan::tools
