// Trainer: the loop around TrainSession::step(). It logs, evaluates, samples, saves and stops; none of that touches the training
// state, so a run does not depend on how often it does any of it.
//
//   step -> log -> evaluate if due -> sample if due -> save if due -> asked to stop?
//
// A save that fails leaves the run going: the reason is shown, the next interval tries again, and only a failed last save is an
// error. A directory that has become another process's ends it. Asked to stop, an evaluation is given up; a resume makes it again.
// A step whose data can't be read ends the run with the state before it saved. With checkpoint.background the reason comes out at a
// later step. A loss or gradient that is not finite, or a spike, leaves a capsule (train/capsule.h); then the run stops before the
// update, leaves the batch out, or goes back, as the config says.
#pragma once

#include <chrono>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>

#include "train/checkpoint_saver.h"
#include "train/evaluate.h"
#include "train/metrics_log.h"
#include "train/progress.h"
#include "train/run_dir.h"
#include "train/session.h"
#include "train/signals.h"

namespace rowan {

struct TrainerOptions {
  std::FILE* out = stdout;
  bool quiet = false;
  // One more line of metrics.jsonl for a step that is logged; "": none.
  std::function<std::string(int64_t step)> more_to_log = {};
};

struct TrainOutcome {
  int64_t step = 0;
  int signal = 0;            // 0, or the signal that ended the run early
  bool out_of_time = false;  // ended by train.max_minutes
};

class Trainer {
 public:
  Trainer(TrainSession& session, RunDir& run, const TrainerOptions& options);

  // Trains until config.train.steps. metrics.jsonl is first cut back to the step that the session is at. Throws Error: kNonFinite,
  // or kData when the last save failed.
  TrainOutcome run();

 private:
  using Clock = std::chrono::steady_clock;

  void start();
  void train_step();
  void save_before_the_end();
  bool out_of_time() const;
  void log_step(const StepResult& result, double seconds);
  void show_step(const StepResult& result);
  void answer(const StepResult& result);  // to a step that went wrong
  void rewind(const StepResult& result);
  [[noreturn]] void stop_for(const StepResult& result, const std::string& why);
  bool evaluation_was_cut_short() const;
  void make_evaluation_again();
  void evaluate_now(bool on_grid);
  std::optional<EvalResult> evaluate_split();
  void log_evaluation(const EvalResult& r);
  bool take_best(const EvalResult& r, bool on_grid);
  void sample_now();
  void save(bool best);    // unless this step has been saved; best: make best.h5 of it, too
  void settle(bool wait);  // what came of the save in flight; throws its Error
  void forget_best();
  bool attempt(const std::string& what, const std::function<void()>& action);  // false, and a warning, when it fails
  bool save_due();
  void finish(TrainOutcome& outcome);
  void log(const std::string& event);  // one JSON object
  double seconds_since_start() const;
  bool every(int64_t interval) const { return interval > 0 && session_.steps_done() % interval == 0; }

  TrainSession& session_;
  const Config& config_;
  RunDir& run_;
  std::function<std::string(int64_t step)> more_to_log_;
  MetricsLog metrics_;
  bool log_fails_ = false;  // which has been said
  Progress progress_;
  SignalScope signals_;
  CheckpointSaver saver_;
  const Clock::time_point start_ = Clock::now();
  double last_save_time_ = 0;
  int64_t saved_step_ = -1;                                // the newest checkpoint that stands
  int64_t begun_step_ = -1;                                // the newest that was begun; in flight when it is not saved_step_
  std::optional<std::pair<double, int64_t>> best_before_;  // best loss and step before one whose best.h5 does not stand yet
  double step_seconds_ = 0;                                // in training steps of this process, evaluation and saving left out
  int64_t steps_here_ = 0, tokens_here_ = 0;
  double eval_seconds_ = 0;  // of the last evaluation
  double flops_per_token_ = 0, gemm_flops_ = 0;
};

}  // namespace rowan
