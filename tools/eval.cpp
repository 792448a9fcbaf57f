// rowan eval: loss, perplexity and bits per byte of a checkpoint over a whole split or over a file.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "core/parallel.h"
#include "tools/command.h"
#include "tools/output.h"
#include "tools/training.h"
#include "train/compare_result_json.h"
#include "train/evaluate.h"
#include "train/frequency.h"

namespace rowan::tools {
namespace {

struct EvalOptions {
  std::string path;
  std::vector<std::string> data;
  int64_t threads = 0;
  bool by_frequency = false, json = false;
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

// How often training had read each token when the checkpoint was made.
TokenCounts counts_of(const LoadedModel& loaded) {
  const Config& c = loaded.config;
  const DataLoader loader(open_corpus(c.data, loaded.tokenizer).train, c.data.batch_size, data_order(c.data.order),
                          static_cast<uint64_t>(c.train.seed));
  return count_training(loader, c.model.vocab_size, loaded.step, c.train.grad_accum);
}

void print_buckets(const char* title, const std::map<int, BucketLoss>& buckets, bool truth_known) {
  print("\n{:<22}{:>10}{:>10}{}\n", title, "targets", "loss", truth_known ? "  divergence" : "");
  for (const auto& [bucket, b] : buckets)
    print("  {:<20}{:>10}{:>10.4f}{}\n", bucket_text(bucket), b.tokens, b.loss,
          truth_known ? fmt::format("{:>12.5f}", b.divergence) : "");
}

void print_by_frequency(const FrequencyLoss& f) {
  print_buckets("input token seen", f.by_input, f.truth_known);
  print_buckets("target token seen", f.by_target, f.truth_known);
  if (f.truth_known)
    print("\nlowest loss    {:.6f} nats/token (the answers' entropy)\ndivergence     {:.6f} nats/token from the known answers\n",
          f.lowest_loss, f.divergence);
}

void run_eval(const EvalOptions& o) {
  const Threads threads(thread_count(o.threads));
  Checkpoint checkpoint = open_checkpoint(o.path);
  const LoadedModel loaded = load_model(checkpoint);
  const std::shared_ptr<const Examples> split = split_of(o, loaded);
  const EvalResult r = evaluate(*loaded.model, split, *loaded.tokenizer, loaded.config.data.batch_size);
  FrequencyLoss frequency;
  if (o.by_frequency) frequency = evaluate_by_frequency(*loaded.model, split, counts_of(loaded), loaded.config.data.batch_size);
  if (o.json) {
    nlohmann::ordered_json out{
        {"checkpoint", checkpoint.path()},  {"step", loaded.step}, {"loss", r.loss},  {"perplexity", r.perplexity},
        {"bits_per_byte", r.bits_per_byte}, {"tokens", r.tokens},  {"bytes", r.bytes}};
    if (o.by_frequency) {
      out["by_input_frequency"] = losses_json(frequency.by_input, frequency.truth_known);
      out["by_target_frequency"] = losses_json(frequency.by_target, frequency.truth_known);
    }
    print_object(out);
    return;
  }
  print("checkpoint     {} (step {})\n", checkpoint.path(), loaded.step);
  print("loss           {:.6f} nats/token\nperplexity     {:.4f}\nbits per byte  {:.6f}\n", r.loss, r.perplexity, r.bits_per_byte);
  print("tokens         {} ({} bytes of text)\n", r.tokens, r.bytes);
  if (o.by_frequency) print_by_frequency(frequency);
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
  command->add_flag("--by-frequency", o->by_frequency, "Also the loss by how often training read each token; reads its data again");
  command->add_flag("--json", o->json, "One JSON object on stdout");
  command->callback([o] { run_eval(*o); });
}
ROWAN_COMMAND(add_eval_command);

}  // namespace
}  // namespace rowan::tools
