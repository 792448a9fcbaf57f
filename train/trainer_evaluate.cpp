// Trainer: evaluation, and what the lowest loss of all is kept as.
#include <fmt/format.h>

#include <tuple>

#include "train/trainer.h"

namespace rowan {

void Trainer::evaluate_now(bool on_grid) {
  const std::optional<EvalResult> r = evaluate_split();
  if (!r) return;
  log_evaluation(*r);
  take_best(*r, on_grid);
}

// Nothing when there is no split, or when a signal asks to stop.
std::optional<EvalResult> Trainer::evaluate_split() {
  if (session_.corpus().val == nullptr) return std::nullopt;
  const auto begin = Clock::now();
  const std::optional<EvalResult> r =
      evaluate_unless([this] { return signals_.stop_signal() != 0; }, session_.model(), session_.corpus().val,
                      *session_.corpus().tokenizer, config_.data.batch_size, config_.train.eval_tokens);
  eval_seconds_ = std::chrono::duration<double>(Clock::now() - begin).count();
  if (r)
    progress_.message(fmt::format("step {}: validation loss {:.4f}, perplexity {:.2f}, {:.4f} bits/byte ({} tokens, {})",
                                  session_.steps_done(), r->loss, r->perplexity, r->bits_per_byte, r->tokens,
                                  format_duration(eval_seconds_)));
  return r;
}

// False when the loss is the lowest and best.h5 could not be made of it.
bool Trainer::take_best(const EvalResult& r, bool on_grid) {
  if (!(r.loss < session_.best_loss)) return true;  // also when it is NaN
  const std::pair before{session_.best_loss, session_.best_step};
  if (config_.checkpoint.keep_best) attempt("a checkpoint was not saved", [this] { settle(true); });
  session_.best_loss = r.loss;
  session_.best_step = session_.steps_done();
  bool kept = true;
  if (config_.checkpoint.keep_best) {
    best_before_ = before;
    kept = attempt("best.h5 was not saved", [this] { save(true); });
    if (!kept) forget_best();
  }
  // The evaluation at the end of a run would not have happened at this step of a longer run: it leaves no trace in the state.
  if (!on_grid) std::tie(session_.best_loss, session_.best_step) = before;
  return kept;
}

// The next evaluation below what best.h5 holds then makes a new one.
void Trainer::forget_best() {
  if (best_before_) std::tie(session_.best_loss, session_.best_step) = *best_before_;
  best_before_.reset();
}

bool Trainer::evaluation_was_cut_short() const {
  return session_.steps_done() > 0 && every(config_.train.eval_every) && session_.corpus().val != nullptr && !metrics_.evaluated();
}

// With it the checkpoint of this step becomes what it is in a run that nobody stopped. Only then it is logged: until that stands,
// another resume makes it again.
void Trainer::make_evaluation_again() {
  const std::optional<EvalResult> r = evaluate_split();
  if (!r) return;
  const int64_t step = session_.steps_done();
  run_.replace_at(step);
  saved_step_ = begun_step_ = -1;
  const bool stands =
      take_best(*r, true) && attempt("the evaluation of this step was not saved", [this] { save(false), settle(true); });
  saved_step_ = begun_step_ = step;  // the one before it, where that failed
  if (stands) log_evaluation(*r);
}

}  // namespace rowan
