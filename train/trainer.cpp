#include "train/trainer.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <tuple>

#include "core/parallel.h"
#include "train/builtin_data.h"
#include "train/capsule.h"
#include "train/generate.h"
#include "train/machine_rates.h"
#include "train/step_cost.h"
#include "train/versions.h"

namespace rowan {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMinutes = 60;
constexpr int64_t kSampleTokens = 120;

std::string line(const Json& event) {
  return event.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string one_line(const std::string& text) {  // of a sample, for the terminal
  std::string out;
  for (char c : text) {
    if (c == '\n')
      out += "\\n";
    else if (c == '\r')
      out += "\\r";
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      out += ' ';
    else
      out += c;
  }
  return out;
}

int64_t count_sorted(TrainSession& session) {
  int64_t correct = 0;
  EvalBatches batches(session.corpus().train, session.config().data.batch_size);
  for (Batch batch; batches.next(batch);) correct += rows_all_correct(batch, session.model().logits(batch.inputs));
  return correct;
}

}  // namespace

Trainer::Trainer(TrainSession& session, RunDir& run, const TrainerOptions& options)
    : session_(session),
      config_(session.config()),
      run_(run),
      more_to_log_(options.more_to_log),
      metrics_(run.metrics_path()),
      progress_(options.out, options.quiet),
      saver_(run, config_.checkpoint.background) {}

double Trainer::seconds_since_start() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

void Trainer::log(const std::string& event) {
  // Losing a line of the log is no reason to lose the run, nor to fill the terminal.
  const auto append = [&] {
    run_.check_owner();
    metrics_.append(event);
  };
  if (!log_fails_) {
    log_fails_ = !attempt("a line of metrics.jsonl was not written", append);
  } else {
    try {
      append();
      log_fails_ = false;
    } catch (const LockLost&) {
      throw;
    } catch (const Error&) {
    }
  }
}

TrainOutcome Trainer::run() {
  start();
  try {
    while (session_.steps_done() < config_.train.steps && signals_.stop_signal() == 0 && !out_of_time()) train_step();
  } catch (const LockLost&) {
    throw;
  } catch (const Error& e) {
    // Data that can't be read any more: the steps before are good.
    if (e.kind() == ErrorKind::kData && session_.steps_done() > 0) save_before_the_end();
    throw;
  }
  TrainOutcome outcome{.step = session_.steps_done(), .signal = signals_.stop_signal()};
  outcome.out_of_time = outcome.signal == 0 && outcome.step < config_.train.steps;
  finish(outcome);
  return outcome;
}

// The run ends for another reason, which is what is thrown.
void Trainer::save_before_the_end() {
  try {
    settle(true);
    save(false);
    settle(true);
  } catch (const Error& e) {
    progress_.message(fmt::format("warning: step {} was not saved: {}", session_.steps_done(), e.what()));
  }
}

bool Trainer::out_of_time() const {
  const double minutes = config_.train.max_minutes;
  return minutes > 0 && seconds_since_start() >= minutes * kMinutes;
}

void Trainer::start() {
  if (const std::string foreign = metrics_.rewind(session_.steps_done()); !foreign.empty())
    progress_.message("warning: " + foreign);
  saved_step_ = begun_step_ = session_.steps_done() > 0 ? session_.steps_done() : -1;
  flops_per_token_ = counted_flops_per_token(config_.model, config_.data.seq_len, step_shape(config_).negatives);
  if (progress_.live()) gemm_flops_ = quick_gemm_rate({config_.model, config_.data.batch_size, config_.data.seq_len});
  log(line({{"event", "start"},
            {"step", session_.steps_done()},
            {"name", config_.name},
            {"parameters", parameter_count(session_.model())},
            {"steps", config_.train.steps},
            {"tokens_per_step", config_.data.batch_size * config_.data.seq_len * config_.train.grad_accum},
            {"seed", config_.train.seed},
            {"threads", current_threads()},
            {"denormals", denormals_text()}}));
  if (!evaluation_was_cut_short()) return;
  make_evaluation_again();
}

void Trainer::train_step() {
  const auto begin = Clock::now();
  const StepResult result = session_.step();
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  if (!result.updated()) return answer(result);
  if (!result.warning.empty()) progress_.message(fmt::format("warning: step {}: {}", session_.steps_done(), result.warning));
  step_seconds_ += seconds;
  tokens_here_ += result.tokens;
  ++steps_here_;
  if (every(config_.train.log_every) || session_.steps_done() == 1 || session_.steps_done() == config_.train.steps)
    log_step(result, seconds);
  show_step(result);
  if (every(config_.train.eval_every)) evaluate_now(true);
  if (every(config_.train.sample_every) && signals_.stop_signal() == 0) sample_now();
  attempt("a checkpoint was not saved", [this] { settle(false); });
  if (signals_.stop_signal() != 0) return;  // finish() saves
  if (save_due()) attempt(fmt::format("step {} was not saved", session_.steps_done()), [this] { save(false); });
}

void Trainer::log_step(const StepResult& r, double seconds) {
  Json touched = Json::object(), updates = Json::object();
  for (const auto& [name, u] : r.updates) {
    touched[name] = u.touched;
    updates[name] = {{"touched", u.touched},    {"share", u.touched_share()}, {"longest_run", u.longest_run},
                     {"updated", u.updated},    {"caught_up", u.caught_up},   {"bytes", u.bytes},
                     {"gb_per_s", u.gb_per_s()}};
  }
  log(line({{"event", "train"},
            {"step", session_.steps_done()},
            {"loss", r.loss},
            {"lr", r.lr},
            {"grad_norm", r.grad_norm},
            {"tokens", session_.tokens_done()},
            {"tokens_per_s", static_cast<double>(r.tokens) / seconds},
            {"step_ms", 1000 * seconds},
            {"touched_rows", touched},
            {"updates", updates}}));
  if (!more_to_log_) return;
  if (const std::string more = more_to_log_(session_.steps_done()); !more.empty()) log(more);
}

void Trainer::show_step(const StepResult& r) {
  const double now = seconds_since_start();
  const bool last = session_.steps_done() == config_.train.steps;
  if (!last && !progress_.due(now)) return;
  ProgressLine line{.step = session_.steps_done(), .steps = config_.train.steps, .loss = r.loss, .lr = r.lr};
  line.tokens_per_s = static_cast<double>(tokens_here_) / step_seconds_;
  if (gemm_flops_ > 0) line.share_of_gemm = line.tokens_per_s * flops_per_token_ / gemm_flops_;
  const auto left = static_cast<double>(config_.train.steps - session_.steps_done());
  line.seconds_left = left * step_seconds_ / static_cast<double>(steps_here_);
  if (config_.train.eval_every > 0)
    line.seconds_left += eval_seconds_ * std::floor(left / static_cast<double>(config_.train.eval_every));
  progress_.show(line, now);
}

void Trainer::answer(const StepResult& r) {
  const std::string action = answer_to(config_, r);
  const int64_t failed = session_.steps_done() + 1;
  std::string capsule;
  attempt("a checkpoint was not saved", [this] { settle(true); });  // the run's directory is the saver's until then
  attempt("a capsule was not written", [&] {
    run_.check_owner();
    capsule = write_capsule(make_capsule(r, failed - 1, action, resolved_toml(config_)), run_.path());
  });
  if (action == "stop") stop_for(r, "");
  if (action == "rewind")
    rewind(r);
  else if (!session_.count_skip())
    stop_for(r, fmt::format(" {} batches in a row were left out.", LossGuard::kMostSkips));
  log(line({{"event", action}, {"step", session_.steps_done()}, {"failed_step", failed}, {"what", r.what}, {"capsule", capsule}}));
  progress_.message(fmt::format(
      "warning: step {}: {}; {}; see rowan replay {}", failed, r.what,
      action == "skip" ? "its batch is left out" : fmt::format("back to step {}, with the data after it", session_.steps_done()),
      capsule));
}

void Trainer::rewind(const StepResult& r) {
  attempt("a checkpoint was not saved", [this] { settle(true); });
  const int64_t to = rewind_step(config_, session_.steps_done());
  if (to == 0) stop_for(r, " There is no checkpoint to go back to.");
  if (!session_.count_rewind()) stop_for(r, fmt::format(" Going back {} times did not help.", LossGuard::kMostRewinds));
  try {
    Checkpoint checkpoint = Checkpoint::open(run_.checkpoint_path(to));
    session_.rewind_to(checkpoint);
  } catch (const Error& e) {
    stop_for(r, fmt::format(" Going back to step {} failed: {}.", to, e.what()));
  }
  run_.discard_after(to);
  attempt("metrics.jsonl was not cut back", [&] { metrics_.rewind(to); });  // what is foreign in it was said at the start
  saved_step_ = begun_step_ = to;
}

void Trainer::stop_for(const StepResult& r, const std::string& why) {
  const int64_t failed = session_.steps_done() + 1;
  attempt("a checkpoint was not saved", [this] { settle(true); });
  log(line({{"event", "end"}, {"step", session_.steps_done()}, {"reason", r.spike ? "spike" : "not finite"}, {"detail", r.what}}));
  throw Error(fmt::format("[train] {} at step {}; stopped before the update.{} {}", r.what, failed, why,
                          saved_step_ < 0 ? "There is no checkpoint yet"
                                          : "The last good checkpoint is " + run_.checkpoint_path(saved_step_)),
              ErrorKind::kNonFinite, "lower the learning rate, lengthen train.schedule.warmup, or set train.clip_norm");
}

void Trainer::log_evaluation(const EvalResult& r) {
  log(line({{"event", "eval"},
            {"step", session_.steps_done()},
            {"split", "val"},
            {"loss", r.loss},
            {"perplexity", r.perplexity},
            {"bits_per_byte", r.bits_per_byte},
            {"tokens", r.tokens}}));
}

void Trainer::sample_now() {
  std::string text;
  try {
    const GenerateOptions options{.tokens = kSampleTokens, .sampler = {.temperature = 0.8, .seed = config_.train.seed}};
    generate(session_.model(), session_.corpus().tokenizer, config_.train.sample_prompt, options,
             [&](std::string_view piece) { text += piece; });
  } catch (const Error& e) {
    progress_.message(fmt::format("warning: no sample: {}", e.what()));
    return;
  }
  log(line({{"event", "sample"}, {"step", session_.steps_done()}, {"prompt", config_.train.sample_prompt}, {"text", text}}));
  progress_.message(fmt::format("step {}: {}{}", session_.steps_done(), one_line(config_.train.sample_prompt), one_line(text)));
}

bool Trainer::save_due() {
  const bool asked = signals_.take_save_request();
  const double minutes = config_.checkpoint.every_minutes;
  return asked || every(config_.checkpoint.every) || (minutes > 0 && seconds_since_start() - last_save_time_ >= minutes * kMinutes);
}

void Trainer::save(bool best) {
  const int64_t step = session_.steps_done();
  if (begun_step_ == step && !best) return;
  attempt("a checkpoint was not saved", [this] { settle(true); });
  if (saved_step_ == step) {
    if (best) run_.set_best(step);
    best_before_.reset();
    return;
  }
  last_save_time_ = seconds_since_start();
  if (const std::string bad = session_.find_non_finite(); !bad.empty())
    throw Error(fmt::format("[train] {} is not finite after step {}: such a state is not saved", bad, step), ErrorKind::kNonFinite);
  // A line of the log may not be younger than a checkpoint that a power failure leaves.
  attempt("metrics.jsonl was not flushed", [this] { metrics_.sync(); });
  saver_.start(make_image(session_), best, config_.checkpoint.keep_last, rewind_step(config_, step));
  begun_step_ = step;
  settle(!config_.checkpoint.background);
}

void Trainer::settle(bool wait) {
  std::optional<SavedCheckpoint> saved;
  try {
    saved = saver_.collect(wait);
  } catch (const Error&) {
    begun_step_ = saved_step_;
    forget_best();
    throw;
  }
  if (!saved) return;
  saved_step_ = saved->step;
  best_before_.reset();
  log(line({{"event", "checkpoint"},
            {"step", saved->step},
            {"path", saved->path},
            {"bytes", saved->bytes},
            {"seconds", saved->seconds}}));
  for (const std::string& problem : saved->problems) progress_.message("warning: " + problem);
}

bool Trainer::attempt(const std::string& what, const std::function<void()>& action) {
  try {
    action();
    return true;
  } catch (const LockLost&) {
    throw;
  } catch (const Error& e) {
    progress_.message(fmt::format("warning: {}, training goes on: {}", what, e.what()));
    if (!e.hint().empty()) progress_.message("hint: " + e.hint());
    return false;
  }
}

void Trainer::finish(TrainOutcome& outcome) {
  bool done = outcome.signal == 0 && !outcome.out_of_time;
  attempt("a checkpoint was not saved", [this] { settle(true); });
  save(false);
  settle(true);
  if (done && !every(config_.train.eval_every)) evaluate_now(false);
  settle(true);
  outcome.signal = signals_.stop_signal();  // one that ended the evaluation: a resume makes it
  done = done && outcome.signal == 0;
  if (done && dynamic_cast<const SortExamples*>(session_.corpus().train.get()) != nullptr) {
    const int64_t inputs = session_.corpus().train->starts(), correct = count_sorted(session_);
    progress_.message(fmt::format("{} of {} inputs sorted correctly", correct, inputs));
    log(line({{"event", "sorted"}, {"step", session_.steps_done()}, {"correct", correct}, {"inputs", inputs}}));
  }
  log(line({{"event", "end"},
            {"step", session_.steps_done()},
            {"reason", done                  ? "done"
                       : outcome.out_of_time ? "max_minutes"
                                             : "signal"},
            {"tokens", session_.tokens_done()},
            {"seconds", seconds_since_start()}}));
}

}  // namespace rowan
