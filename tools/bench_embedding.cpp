// rowan bench embedding: lookup, gradient and update of an embedding table alone, beside what memory allows.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "core/parallel.h"
#include "tools/command.h"
#include "tools/training.h"
#include "train/bench_embedding.h"

namespace rowan::tools {
namespace {

struct BenchEmbeddingOptions {
  EmbeddingBenchOptions bench;
  int64_t threads = 0;
  bool json = false;
};

void print_json(const EmbeddingBenchOptions& o, const EmbeddingBench& b) {
  const nlohmann::ordered_json out{{"vocab", o.vocab},
                                   {"dim", o.dim},
                                   {"tokens", o.tokens},
                                   {"zipf", o.zipf},
                                   {"rule", o.rule},
                                   {"same_ids", o.same_ids},
                                   {"threads", current_threads()},
                                   {"repeats", b.repeats},
                                   {"touched_rows", b.touched_rows},
                                   {"total_ms", b.total_ms},
                                   {"total_ms_p10", b.low_ms},
                                   {"total_ms_p90", b.high_ms},
                                   {"gather_ms", b.gather_ms},
                                   {"backward_ms", b.backward_ms},
                                   {"coalesce_ms", b.coalesce_ms},
                                   {"update_ms", b.update_ms},
                                   {"limit_ms", b.limit_ms},
                                   {"ratio_to_limit", b.ratio_to_limit()},
                                   {"plain_ms", b.plain_ms},
                                   {"ratio_to_plain", b.ratio_to_plain()},
                                   {"gb_per_s", b.gb_per_s},
                                   {"copy_gb_per_s", b.copy_gb_per_s}};
  fmt::print("{}\n", out.dump());
}

void print_text(const EmbeddingBenchOptions& o, const EmbeddingBench& b) {
  fmt::print("table       {} x {}, {} tokens a step{} with Zipf exponent {}, {}, {} {}\n", o.vocab, o.dim, o.tokens,
             o.same_ids ? ", the same in each," : "", o.zipf, o.rule, current_threads(),
             current_threads() == 1 ? "thread" : "threads");
  fmt::print("touched     {:.0f} rows\n", b.touched_rows);
  fmt::print("time        {:.3f} ms (median of {}; a tenth below {:.3f}, a tenth above {:.3f})\n", b.total_ms, b.repeats, b.low_ms,
             b.high_ms);
  fmt::print("  lookup {:.3f}, gradient {:.3f}, joining equal ids {:.3f}, update {:.3f}\n", b.gather_ms, b.backward_ms,
             b.coalesce_ms, b.update_ms);
  fmt::print("limit       {:.3f} ms for 28 U D + 8 N D bytes at {:.1f} GB/s, this machine's copy rate\n", b.limit_ms,
             b.copy_gb_per_s);
  fmt::print("ratio       {:.2f} x the limit ({:.1f} GB/s)\n", b.ratio_to_limit(), b.gb_per_s);
  fmt::print("plain loop  {:.3f} ms to copy the same rows and to add to them in three arrays; the step takes {:.2f} x that\n",
             b.plain_ms, b.ratio_to_plain());
}

void run_bench_embedding(const BenchEmbeddingOptions& o) {
  const Threads threads(thread_count(o.threads));
  const EmbeddingBench result = bench_embedding(o.bench);
  o.json ? print_json(o.bench, result) : print_text(o.bench, result);
}

void add_bench_embedding_command(CLI::App& app) {
  auto o = std::make_shared<BenchEmbeddingOptions>();
  EmbeddingBenchOptions& b = o->bench;
  CLI::App& bench = command_group(app, "bench", "Measure this machine");
  CLI::App* command = bench.add_subcommand("embedding", "Lookup and row-sparse update of a table, beside the memory's speed");
  command->add_option("--vocab", b.vocab, "Rows of the table (V)")
      ->check(CLI::Range(int64_t{1}, int64_t{2147483647}))
      ->capture_default_str();
  command->add_option("--dim", b.dim, "Width of a row (D)")->check(CLI::Range(1, 1 << 20))->capture_default_str();
  command->add_option("--tokens", b.tokens, "Ids looked up in a step (N)")->check(CLI::Range(1, 1 << 26))->capture_default_str();
  command->add_option("--zipf", b.zipf, "Exponent of the ids' frequencies (0: all alike)")
      ->check(CLI::Range(0.0, 10.0))
      ->capture_default_str();
  command->add_option("--rule", b.rule, "The optimizer")->capture_default_str();
  command->add_flag("--same-ids", b.same_ids, "The same ids in every step, not new ones: their rows stay in the caches");
  command->add_option("--repeats", b.repeats, "Measured steps (0: at least 20, and for about 2 seconds)")
      ->check(CLI::Range(0, 1000000));
  command->add_option("--threads", o->threads, "Threads (0: the physical cores)")->check(CLI::Range(0, 1024));
  command->add_flag("--json", o->json, "One JSON object on stdout");
  command->callback([o] { run_bench_embedding(*o); });
}
ROWAN_COMMAND(add_bench_embedding_command);

}  // namespace
}  // namespace rowan::tools
