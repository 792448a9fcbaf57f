#include "train/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "train/run_lock.h"

namespace rowan {
namespace {

using Clock = std::chrono::steady_clock;

// Runs of one seed must start alike: the first to start says how, those after it are held to that.
class Pairing {
 public:
  void check(const std::string& who, int64_t seed, const RunResult& start) {
    const auto [found, first] = starts_.emplace(seed, Start{who, start.weights_digest, start.data_digest});
    if (first) return;
    const Start& other = found->second;
    const char* what = other.weights != start.weights_digest ? "initial weights"
                       : other.data != start.data_digest     ? "data"
                                                             : nullptr;
    if (what == nullptr) return;
    throw Error(fmt::format("[compare] {} and {} have different {} under seed {}, so their losses can't be compared in pairs",
                            other.who, who, what, seed),
                ErrorKind::kUsage, "leave the model's shape, the batch and the steps to the base config and [set]");
  }

 private:
  struct Start {
    std::string who, weights, data;
  };
  std::map<int64_t, Start> starts_;
};

// Runs must be of the same files: all of them, or those of one seed when data is what a seed makes.
class SameData {
 public:
  explicit SameData(const std::vector<std::string>& seed_keys)
      : by_seed_(
            std::any_of(seed_keys.begin(), seed_keys.end(), [](const std::string& key) { return key.rfind("data.", 0) == 0; })) {}

  void check(const std::string& who, const Config& config, int64_t seed, const RunResult& start) {
    const auto [found, first] = starts_.emplace(by_seed_ ? seed : 0, Start{who, start.train_fingerprint, start.val_fingerprint});
    if (first) return;
    const Start& other = found->second;
    const bool train = other.train != start.train_fingerprint;
    if (!train && other.val == start.val_fingerprint) return;
    const std::vector<std::string>& files = train || config.data.val.empty() ? config.data.train : config.data.val;
    std::string names;
    for (const std::string& file : files) names += (names.empty() ? "'" : ", '") + file + "'";
    throw Error(fmt::format("[compare] {} had another content for {} than for {}, so their losses can't be compared", names,
                            other.who, who),
                ErrorKind::kUsage, "put back what was there, or start anew in another directory with --out");
  }

 private:
  struct Start {
    std::string who, train, val;
  };
  bool by_seed_;
  std::map<int64_t, Start> starts_;
};

class Runner {
 public:
  Runner(const Sweep& sweep, const std::string& directory, const std::function<void(const CompareProgress&)>& show)
      : sweep_(sweep), directory_(directory), show_(show), data_(sweep.seed_keys) {
    for (const SweepArm& arm : sweep.arms) of_ += std::ssize(arm.points) * std::ssize(sweep.seeds);
    of_ += std::ssize(sweep.aa_seeds);
  }

  // Nobody else works on the directory from here on.
  void hold_directory() {
    if (lock_) return;
    make_directories(directory_);
    lock_.emplace(RunLock::acquire(directory_));
  }

  // False when a signal ended it.
  bool run(size_t arm, size_t point, const std::vector<int64_t>& seeds, std::vector<RunResult>& results) {
    for (int64_t seed : seeds) {
      if (!run_one(arm, point, seed)) return false;
      results.push_back(std::move(last_));
    }
    return true;
  }
  int signal() const { return signal_; }

 private:
  bool run_one(size_t arm, size_t point, int64_t seed) {
    const SweepArm& a = sweep_.arms[arm];
    const std::string& label = a.points[point].label;
    const Config config = run_config(sweep_, arm, point, seed);
    const std::string who = fmt::format("{} ({})", a.name, label);
    RunRequest request{config, join_path(directory_, fmt::format("runs/{}/{}/seed-{}", a.name, label, seed)),
                       [&](const RunResult& start) {
                         hold_directory();
                         data_.check(fmt::format("{} under seed {}", who, seed), config, seed, start);
                         pairing_.check(who, seed, start);
                       }};
    const auto begin = Clock::now();
    RunOutcome outcome = run_or_resume(request);
    signal_ = outcome.signal;
    if (signal_ != 0) return false;
    last_ = outcome.result;
    show_({++number_, of_, a.name, label, seed, std::move(outcome), std::chrono::duration<double>(Clock::now() - begin).count()});
    return true;
  }

  const Sweep& sweep_;
  const std::string& directory_;
  const std::function<void(const CompareProgress&)>& show_;
  std::optional<RunLock> lock_;
  SameData data_;
  Pairing pairing_;
  RunResult last_;
  int64_t number_ = 0, of_ = 0;
  int signal_ = 0;
};

}  // namespace

CompareOutcome run_comparison(const Sweep& sweep, const std::string& directory,
                              const std::function<void(const CompareProgress&)>& show) {
  Runner runner(sweep, directory, show);
  // A new directory is made when the first run can start: nothing is left of a comparison whose data can't be read.
  if (directory_exists(directory)) runner.hold_directory();
  std::vector<std::vector<std::vector<RunResult>>> results;
  for (size_t arm = 0; arm < sweep.arms.size(); ++arm) {
    results.emplace_back(sweep.arms[arm].points.size());
    for (size_t point = 0; point < results[arm].size(); ++point)
      if (!runner.run(arm, point, sweep.seeds, results[arm][point])) return {runner.signal(), {}};
  }
  std::vector<RunResult> aa_runs;
  const std::optional<size_t> repeated = best_point(sweep, results[sweep.baseline_arm]);
  if (repeated && !runner.run(sweep.baseline_arm, *repeated, sweep.aa_seeds, aa_runs)) return {runner.signal(), {}};
  CompareOutcome outcome{0, compare(sweep, std::move(results), std::move(aa_runs))};
  publish_text(join_path(directory, "results.json"), results_json(sweep, *outcome.comparison), IfExists::kReplace);
  publish_text(join_path(directory, "results.csv"), results_csv(sweep, *outcome.comparison), IfExists::kReplace);
  return outcome;
}

}  // namespace rowan
