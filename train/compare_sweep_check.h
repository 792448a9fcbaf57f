// What the settings of a sweep must be to each other, beyond the config of each run: found before anything is trained. Internal to
// train/compare_sweep.cpp. All throw Error (kUsage).
#pragma once

#include "train/compare_sweep.h"

namespace rowan {

// Seeds must reach a field that is one, and nothing else may set it.
void check_seed_keys(const Sweep& sweep, ConfigPlace seed_keys);
// No setting for all runs may lose to the shared grid, nor one of --set (which has no place) to an arm.
void check_settings_for_all(const Sweep& sweep, const std::vector<SweepAxis>& shared);
void check_overrides(const Sweep& sweep);
// What would change nothing: a setting of an arm in that arm's runs, a value of a grid at all its points, one for all arms in all
// runs. idle[arm][point].
using IdleOfRuns = std::vector<std::vector<std::vector<IdleSetting>>>;
void check_no_idle_settings(const Sweep& sweep, const IdleOfRuns& idle);
// No run twice: points of an arm, and of two arms on the same axes, must differ in their configs; and no two arms may have the same
// points altogether. An arm that tunes one more axis may contain another arm. texts[arm][point]: config_text() of one seed.
using TextOfRuns = std::vector<std::vector<std::string>>;
std::string config_text(const Config& config);  // every field that training depends on
void check_no_run_twice(const Sweep& sweep, const TextOfRuns& texts);
// A run that leaves batches out goes on with other data than its pairs.
void check_no_batch_left_out(const Sweep& sweep, const Config& config, const SweepArm& arm);
// Two runs of one seed, as far as their configs say: the same parameters, and as many tokens. `first` is that of the first arm's
// first point.
void check_pair(const Sweep& sweep, const Config& first, const Config& other, const SweepArm& arm, const SweepPoint& point);

}  // namespace rowan
