#include "tools/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "core/parallel.h"
#include "tools/command.h"
#include "tools/output.h"
#include "train/config_fields.h"
#include "train/run_start.h"
#include "train/trainer.h"
#include "train/versions.h"

namespace rowan::tools {
namespace {

std::string count_text(int64_t n) {
  if (n < 1000) return fmt::format("{}", n);
  if (n < 1000000) return fmt::format("{:.1f}K", static_cast<double>(n) / 1e3);
  return fmt::format("{:.2f}M", static_cast<double>(n) / 1e6);
}

void print_head(const Config& c, int64_t step) {
  const int64_t until = c.train.untie_at;
  if (c.train.loss == "sampled")
    print(
        "The LM head is trained by sampled softmax, {} negatives by {}: the head is row-sparse. "
        "The training loss is an estimate; evaluation is over the whole vocabulary.\n",
        c.train.sampled.negatives, c.train.sampled.sampler);
  if (untied_by(c, step)) {
    if (c.model.tied) print("The LM head was tied to embed.tokens.weight until step {}.\n", until);
    return;
  }
  if (c.train.tied_two_source)
    print(
        "The LM head is tied to embed.tokens.weight, which is updated from two sources: the lookup's gradient by rows, and the "
        "softmax's, as head.weight, densely.\n");
  else
    print("The LM head is tied to embed.tokens.weight: softmax gives every row a gradient, so the table is updated densely.\n");
  if (until > 0) print("It will be untied after step {}.\n", until);
}

void print_summary(TrainSession& session, const RunDir& run) {
  const Config& c = session.config();
  const GptConfig& m = c.model;
  const int64_t batch = c.data.batch_size * c.data.seq_len * c.train.grad_accum;
  print("run        {}\n", run.path());
  print("model      {} layers, {} wide, {} heads, {} positions, {}, {}; {} parameters\n", m.n_layer, m.d_model, m.n_head,
        m.positions, m.norm, m.mlp, count_text(parameter_count(session.model())));
  const Corpus& data = session.corpus();
  print("data       {} training targets, {} validation, vocabulary {} ({})\n", count_text(data.train->targets()),
        data.val == nullptr ? "none for" : count_text(data.val->targets()), data.tokenizer->vocab_size(), data.tokenizer->kind());
  print("step       {} tokens ({} x {} x {}), {} steps, {:.2f} epochs\n", batch, c.data.batch_size, c.data.seq_len,
        c.train.grad_accum, c.train.steps,
        static_cast<double>(c.train.steps * c.train.grad_accum * c.data.batch_size) /
            static_cast<double>(session.loader().sequences_per_epoch()));
  print("threads    {}\n", current_threads());
  print("denormals  {}\n", denormals_text());
  for (const IdleSetting& idle : idle_settings(c)) print("note       {}\n", idle.what);
  print_text(session.optimizers().report_text());
  print_head(c, session.steps_done());
  std::fflush(stdout);
}

// Sizes that the config leaves open are those of the saved model; what a file says is compared with what the run has.
Config with_saved_sizes(Config config, const Config& saved) {
  if (config.model.vocab_size == 0) config.model.vocab_size = saved.model.vocab_size;
  config.model.resolve();
  return config;
}

// What decides last bits and is no setting; "" when the checkpoint does not say.
void print_machine_change(const char* what, const std::string& before, const std::string& now) {
  if (before.empty() || before == now) return;
  print("{:<10} {} (was {}): the last bits may differ from those of a run that stayed there\n", what, now, before);
}

// A rule brings fields of its own, so a saved config with another rule does not even parse: that is said first, and by name.
void check_rules(const Config& saved, const std::vector<std::string>& overrides) {
  for (const std::string& given : overrides) {
    std::string key = given.substr(0, given.find('='));
    std::replace(key.begin(), key.end(), '[', '.');
    std::erase(key, ']');
    if (!key.starts_with("optim") || key_leaf(key) != "rule" || key.size() == given.size()) continue;
    const std::string value = given.substr(given.find('=') + 1);
    for (const ConfigField& field : config_fields(saved)) {
      if (field.key != key || field.value == value || field.value == toml_text(value)) continue;
      throw Error(fmt::format("[resume] these settings can't change between save and resume: {} from {} to {} (the saved optimizer "
                              "state is that of another rule)",
                              key, field.value, toml_text(value)),
                  ErrorKind::kUsage, "start a new run");
    }
  }
}

// OpenMP, on which oneDNN runs, binds a process's first thread as it is loaded when one of these asks for that; threads that the
// first one makes inherit it.
std::string binding_hint() {
  for (const char* name : {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY"})
    if (std::getenv(name) != nullptr) return fmt::format("; {} is set and binds the first thread to one: unset it", name);
  return "";
}

void check_steps(const Config& config, int64_t done) {
  if (config.train.steps >= done) return;
  throw Error(
      fmt::format("[resume] the run is at step {}; expected train.steps of at least that, got {}", done, config.train.steps),
      ErrorKind::kUsage);
}

}  // namespace

int thread_count(int64_t configured) {
  const int cores = usable_cores();
  if (cores == 1 && configured != 1) {
    const std::string asked = configured > 1 ? fmt::format("{} threads are asked for, but ", configured) : "";
    warn(asked + "only one core may be used here (affinity or a container's limit)" + binding_hint());
  }
  return configured > 0 ? static_cast<int>(configured) : cores;
}

Checkpoint open_checkpoint(const std::string& path, bool strict) {
  FoundCheckpoint found = find_checkpoint(path, strict);
  for (const SkippedCheckpoint& s : found.skipped) warn(fmt::format("{} is damaged and left out: {}", s.path, s.reason));
  return std::move(found.checkpoint);
}

void run_training(TrainSession& session, RunDir& run) {
  write_description(session, run);
  print_summary(session, run);
  TrainOutcome outcome;
  {
    Trainer trainer(session, run, {});
    outcome = trainer.run();
  }
  if (outcome.signal != 0) {
    print("stopped by signal {} at step {}; go on with: rowan resume {}\n", outcome.signal, outcome.step, run.path());
    throw ExitStatus{128 + outcome.signal};
  }
  if (outcome.out_of_time) {
    print("stopped after {} minutes at step {}; go on with: rowan resume {}\n", session.config().train.max_minutes, outcome.step,
          run.path());
    return;
  }
  print("done: {} steps; the run is in {}\n", outcome.step, run.path());
}

void resume_run(const std::string& directory, const std::vector<std::string>& overrides, const Config* wanted, bool strict) {
  RunDir run = RunDir::open(directory);
  Checkpoint checkpoint = open_checkpoint(directory, strict);
  const Config saved = checkpoint_config(checkpoint);
  check_rules(saved, overrides);
  const Config config =
      with_saved_sizes(wanted != nullptr ? *wanted : parse_config(checkpoint.text("/config"), checkpoint.path(), overrides), saved);
  const std::vector<ConfigChange> changes = check_resume_changes(saved, config);
  check_steps(config, checkpoint.integer("/train/step"));
  const Threads threads(thread_count(config.train.threads));
  TrainSession session(config, checkpoint_tokenizer(checkpoint));
  session.load(checkpoint);
  for (const ConfigChange& change : changes)
    print("changed    {} = {} (was {}){}{}\n", change.key, change.after, change.before, change.note.empty() ? "" : ": ",
          change.note);
  print_machine_change("machine", session.saved_machine(), machine_text());
  print_machine_change("denormals", session.saved_denormals(), denormals_text());
  print("resuming   {} at step {}\n", checkpoint.path(), session.steps_done());
  run_training(session, run);
}

}  // namespace rowan::tools
