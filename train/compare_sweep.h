// Sweep: what `rowan compare` is to run, read from a TOML file, strictly.
//
//   base = "small.toml"              # the config of every run; beside this file
//   seeds = [1, 2, 3]                # at least two, and the same for every arm
//   baseline = "dense"               # the arm that others are compared with (default: the first)
//   aa_seeds = [11, 12, 13]          # optional: the baseline's best setting once more, under these
//   [set]                            # optional: fields of the base that all runs change
//   "train.steps" = 2000
//   [grid]                           # every combination is run
//   "optim.group.0.lr" = [1e-3, 3e-3, 1e-2]
//   [[arm]]
//   name = "dense"
//   set = { "optim.group.0.rule" = "adamw" }
//   grid = { }                       # optional: axes of this arm alone, in place of those of [grid]
//
// Arms and axes may set any field but those that would give a seed other data ([data], train.seed): runs of one seed are compared
// in pairs. That their initial weights are the same too is checked when they start.
//
// All functions throw Error (kUsage) "[config] file:line:column: what was expected, what came", as for any config.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/config.h"
#include "train/config_document.h"

namespace rowan {

struct SweepSetting {
  std::string key;    // "optim.group.0.lr"
  std::string value;  // as TOML
  ConfigPlace place = {};
};

struct SweepAxis {
  std::string key;
  std::vector<std::string> values;  // as TOML, in the order of the file
  std::vector<double> numbers;      // the same; empty when they are no numbers
  ConfigPlace place = {};
};

// One value from every axis of an arm.
struct SweepPoint {
  std::vector<size_t> at;              // the value's number, by axis
  std::vector<SweepSetting> settings;  // by axis
  std::string label;                   // "optim.group.0.lr=0.003": a directory's name
};

struct SweepArm {
  std::string name;
  std::vector<SweepSetting> settings;
  std::vector<SweepAxis> axes;
  std::vector<SweepPoint> points;
  ConfigPlace place = {};
};

struct Sweep {
  std::string file;  // for messages
  std::string name;  // of the comparison and its directory (default: the file's, without folder and ending)
  std::string base, base_text;
  std::string baseline;
  size_t baseline_arm = 0;
  double confidence = 0.95;
  int64_t resamples = 10000;
  std::vector<std::string> seed_keys = {"train.seed"};  // the fields that get a run's seed
  std::vector<int64_t> seeds, aa_seeds;
  std::vector<SweepSetting> settings;
  std::vector<SweepArm> arms;

  void visit(FieldVisitor& v);
};

// Reads a sweep and checks the config of every run. `overrides` are those of --set, for all runs.
Sweep load_sweep(const std::string& path, const std::vector<std::string>& overrides = {});

// The config of one run, named "<arm>-seed-<seed>".
Config run_config(const Sweep& sweep, size_t arm, size_t point, int64_t seed);

}  // namespace rowan
