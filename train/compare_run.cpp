#include "train/compare_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "train/compare_result_json.h"
#include "train/digest.h"
#include "train/json_text.h"
#include "train/machine_rates.h"
#include "train/run_start.h"
#include "train/touch_log.h"
#include "train/trainer.h"

namespace rowan {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kTable = "embed.tokens.weight";
constexpr const char* kResultFile = "compare.json";
constexpr int64_t kLargestResult = 64 << 20, kLargestLog = int64_t{1} << 31;

std::string weights_digest(Gpt& model) {
  Digester digest;
  for_each_parameter(model, [&](const std::string& name, Parameter& p) {
    digest.update(name);
    digest.update(p.value().data(), static_cast<size_t>(p.value().size()) * sizeof(Real));
  });
  return digest.text();
}

// Settings that do not reach the results.
bool is_free(const std::string& key) {
  return key == "train.threads" || key == "train.recompute" || key.rfind("checkpoint.", 0) == 0;
}

// A run that stands there must be the one that is wanted, or results of two sweeps would be mixed.
void check_settings(const std::string& directory, Config wanted) {
  const std::string path = join_path(directory, "config.toml");
  const Config saved = parse_config(read_text(path, kLargestResult), path);
  if (wanted.model.vocab_size == 0) wanted.model.vocab_size = saved.model.vocab_size;
  wanted.model.resolve();
  std::string changes;
  for (const ConfigChange& c : config_diff(saved, wanted))
    if (!is_free(c.key)) changes += fmt::format("{}{} was {} and is {}", changes.empty() ? "" : "; ", c.key, c.before, c.after);
  if (!changes.empty())
    throw Error(fmt::format("[compare] '{}' holds a run with other settings: {}", directory, changes), ErrorKind::kUsage,
                "name another directory with --out, or remove that one");
}

// What metrics.jsonl says of a run. A step that stands in it twice (its evaluation, when the run was killed after it) counts once.
struct LoggedRun {
  std::map<int64_t, double> losses;
  std::map<int, BucketTouches> touches;
  std::vector<double> step_ms, update_ms, bytes, touched;
};

void take_touches(const Json& event, LoggedRun& log) {
  for (const auto& [bucket, t] : event.at("by_count").items()) {
    BucketTouches& sum = log.touches[std::stoi(bucket)];
    sum.touches += t.at("touches").get<int64_t>();
    sum.moved += t.at("moved").get<double>();
  }
  if (!event.contains("bytes")) return;
  log.bytes.push_back(event.at("bytes").get<double>());
  log.update_ms.push_back(1000 * event.at("seconds").get<double>());
}

LoggedRun read_log(const std::string& path) {
  LoggedRun log;
  const std::string text = read_text(path, kLargestLog);
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const Json event = parse_event<Json>(std::string_view(text).substr(begin, end - begin));
    if (event.is_null()) continue;
    const std::string what = event.at("event").get<std::string>();
    // A loss that was not finite stands there as null.
    if (what == "eval" && event.at("loss").is_number())
      log.losses[event.at("step").get<int64_t>()] = event.at("loss").get<double>();
    if (what == "touch") take_touches(event, log);
    if (what != "train") continue;
    log.step_ms.push_back(event.at("step_ms").get<double>());
    if (event.at("touched_rows").contains(kTable)) log.touched.push_back(event.at("touched_rows").at(kTable).get<double>());
  }
  for (auto& [bucket, t] : log.touches) t.moved /= static_cast<double>(t.touches);
  return log;
}

double mean_or_zero(const std::vector<double>& values) {
  double sum = 0;
  for (double v : values) sum += v;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

void measure(TrainSession& session, const RunDir& run, const TokenCounts& counts, RunResult& result) {
  const Config& c = session.config();
  Gpt& model = session.model();
  result.parameters = parameter_count(model);
  result.validation = evaluate_by_frequency(model, session.corpus().val, counts, c.data.batch_size, c.train.eval_tokens);
  if (!std::isfinite(result.validation.loss))
    throw Error("the validation loss of the last step is not finite", ErrorKind::kNonFinite);
  const Tensor& table = session.token_table();
  result.rows = rows_by_frequency(table, counts);
  result.state_bytes_per_row =
      static_cast<double>(session.optimizers().optimizer_of(kTable).state_bytes(kTable)) / static_cast<double>(table.shape()[0]);
  LoggedRun log = read_log(run.metrics_path());
  for (const auto& [step, loss] : log.losses) result.curve.push_back({step, loss});
  result.touches = std::move(log.touches);
  result.bytes_per_step = mean_or_zero(log.bytes);
  result.touched_rows = log.touched.empty() ? static_cast<double>(table.shape()[0]) : mean_or_zero(log.touched);
  result.step_ms = log.step_ms.empty() ? 0 : median_of(log.step_ms);
  result.update_ms = log.update_ms.empty() ? 0 : median_of(log.update_ms);
}

RunResult starting_point(TrainSession& session, const TokenCounts& counts) {
  RunResult result;
  result.weights_digest = weights_digest(session.model());
  result.data_digest = counts.data_digest;
  result.train_fingerprint = session.corpus().train->fingerprint();
  result.val_fingerprint = session.corpus().val->fingerprint();
  return result;
}

// A run that died before its first checkpoint starts again in its place.
RunDir place_of(const RunRequest& request) {
  if (!is_run(request.directory)) return RunDir::create(request.directory, false);
  if (file_exists(join_path(request.directory, "config.toml"))) check_settings(request.directory, request.config);
  return RunDir::open(request.directory);
}

TrainOutcome train(TrainSession& session, RunDir& run, const TokenCounts& counts) {
  TouchLog touches(session, counts, session.config().train.log_every);
  session.observe(&touches);
  const TrainOutcome outcome =
      Trainer(session, run, {.quiet = true, .more_to_log = [&](int64_t step) { return touches.take_line(step); }}).run();
  session.observe(nullptr);
  return outcome;
}

}  // namespace

bool run_is_done(const std::string& directory) {
  return file_exists(join_path(directory, kResultFile));
}

RunResult load_run_result(const std::string& directory) {
  const std::string path = join_path(directory, kResultFile);
  try {
    return run_result_from_json(parse_json<Json>(read_text(path, kLargestResult)));
  } catch (const Json::exception& e) {
    throw Error(fmt::format("[compare] '{}' is not what was written there: {}", path, e.what()), ErrorKind::kData,
                "remove it: the run's measurements are then made again");
  }
}

RunOutcome run_or_resume(const RunRequest& request) {
  const Config& config = request.config;
  RunOutcome outcome;
  if (run_is_done(request.directory)) {
    check_settings(request.directory, config);
    outcome.result = load_run_result(request.directory);
    outcome.done_before = true;
    if (request.check_start) request.check_start(outcome.result);
    return outcome;
  }
  TrainSession session(config);
  if (session.corpus().val == nullptr)
    throw Error("[compare] the runs have no validation split to be compared on", ErrorKind::kUsage,
                "set data.val or data.val_fraction in the base config");
  const TokenCounts counts =
      count_training(session.loader(), session.config().model.vocab_size, config.train.steps, config.train.grad_accum);
  RunResult& result = outcome.result = starting_point(session, counts);
  if (request.check_start) request.check_start(result);
  RunDir run = place_of(request);
  if (!checkpoint_steps(request.directory).empty()) {
    FoundCheckpoint found = find_checkpoint(request.directory);
    session.load(found.checkpoint);
  }
  write_description(session, run);
  try {
    const TrainOutcome trained = train(session, run, counts);
    outcome.signal = trained.signal;
    if (trained.signal != 0) return outcome;
    ROWAN_CHECK(!trained.out_of_time, "[compare] train.max_minutes ended '", request.directory, "' at step ", trained.step,
                ": run the same command again to go on");
    measure(session, run, counts, result);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kNonFinite) throw;
    result.diverged = true;  // a result like any other: this setting does not train
    const std::string why = e.what();
    result.why = why.substr(0, why.find(';'));  // without what follows: where the last checkpoint lies
  }
  publish_text(run.file(kResultFile), to_json(result).dump(1) + "\n", IfExists::kReplace);
  return outcome;
}

}  // namespace rowan
