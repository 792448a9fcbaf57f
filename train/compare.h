// A comparison of optimizer settings: all runs of a sweep, one after another, and what they say.
//
//   <directory>/runs/<arm>/<point of the grid>/seed-<n>/   run directories like any other
//   <directory>/results.json, results.csv
//
// Every arm sees the same initial weights and the same data per seed (checked at the start of every run), so an arm's difference
// from the baseline is taken seed by seed. Each arm stands with its best point of the grid: that with the lowest mean loss over the
// seeds. A best point at the grid's edge is no winner: a better one may lie outside.
//
// The best point is chosen by the losses that are then compared, for every arm alike; with many points and few seeds differences
// look somewhat larger than they are. p values are adjusted for the number of arms (Holm), not for the points.
//
// A/A: the baseline's best point once more, under seeds of its own. Its difference from the baseline is what seeds alone make.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "train/compare_run.h"
#include "train/compare_statistics.h"
#include "train/compare_sweep.h"

namespace rowan {

struct PointSummary {
  std::vector<RunResult> runs;  // by seed
  bool trained = false;         // under every seed; the rest is only then set
  double mean = 0, deviation = 0;
  Interval interval;  // of the mean, by Student's t
};

struct ArmSummary {
  std::vector<PointSummary> points;
  std::optional<size_t> best;  // the lowest mean loss; nothing when no point trained under every seed
  std::string refused;         // why the best point is no winner; "" when it is one
};

// Of an arm's best point from the baseline's best point: positive is worse.
struct ArmDifference {
  size_t arm = 0;
  std::vector<double> by_seed;  // paired; none for A/A, whose runs have nothing in common with the baseline's
  double deviation = 0;         // of one such difference
  double mean = 0;
  Interval t, bootstrap;
  double p = 1, p_holm = 1;
};

struct Comparison {
  std::vector<ArmSummary> arms;
  std::vector<ArmDifference> differences;  // of all arms but the baseline that have a best point
  std::vector<RunResult> aa_runs;          // by aa_seed
  std::optional<ArmDifference> aa;         // of the baseline from itself
};

// Looks at finished runs. results[arm][point][seed].
Comparison compare(const Sweep& sweep, std::vector<std::vector<std::vector<RunResult>>> results, std::vector<RunResult> aa_runs);
// Of one arm, results[point][seed]: what the A/A runs repeat of the baseline.
std::optional<size_t> best_point(const Sweep& sweep, const std::vector<std::vector<RunResult>>& results);

struct CompareProgress {
  int64_t number = 0, of = 0;  // of the run, from 1
  std::string arm, point;
  int64_t seed = 0;
  RunOutcome outcome;
  double seconds = 0;
};

struct CompareOutcome {
  int signal = 0;  // not 0: ended early, nothing is lost, and the same command goes on
  std::optional<Comparison> comparison;
};

// Runs what is not done yet, holding the directory's lock, then writes the results. `show` is called after every run.
CompareOutcome run_comparison(const Sweep& sweep, const std::string& directory,
                              const std::function<void(const CompareProgress&)>& show);

// --- results as text
std::string results_json(const Sweep& sweep, const Comparison& comparison);  // members named "time" hold what no two runs share
std::string results_csv(const Sweep& sweep, const Comparison& comparison);   // one line a run
std::string results_table(const Sweep& sweep, const Comparison& comparison);

}  // namespace rowan
