// results.json and results.csv.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "train/compare.h"
#include "train/compare_average.h"
#include "train/compare_result_json.h"
#include "train/config_fields.h"
#include "train/versions.h"

namespace rowan {
namespace {

using Json = nlohmann::ordered_json;

Json settings_json(const std::vector<SweepSetting>& settings) {
  Json json = Json::object();
  for (const SweepSetting& s : settings) json[s.key] = s.value;
  return json;
}

Json interval_json(const Interval& i) {
  return {i.low, i.high};
}

Json point_json(const SweepPoint& point, const PointSummary& summary) {
  Json losses = Json::array(), diverged = Json::array();
  for (const RunResult& run : summary.runs) {
    losses.push_back(run.diverged ? Json() : Json(run.validation.loss));
    if (run.diverged) diverged.push_back(run.why);
  }
  Json json{{"point", settings_json(point.settings)}, {"label", point.label}, {"losses", losses}};
  if (summary.trained) {
    json["mean"] = summary.mean;
    json["deviation"] = summary.deviation;
    json["interval"] = interval_json(summary.interval);
  } else {
    json["mean"] = nullptr;
    json["diverged"] = diverged;
  }
  return json;
}

// The arm at its best point, over its seeds.
void add_best(const std::vector<RunResult>& runs, Json& json) {
  const AverageRun a = average(runs);
  json["loss"] = a.loss;
  if (a.truth_known) {
    json["lowest_loss"] = a.lowest_loss;
    json["divergence"] = a.divergence;
  }
  json["state_bytes_per_row"] = a.state_bytes_per_row;
  json["bytes_per_step"] = a.bytes_per_step;
  json["touched_rows"] = a.touched_rows;
  Json by_step = Json::array(), by_time = Json::array();
  for (const CurvePoint& p : a.curve) {
    by_step.push_back({{"step", p.step}, {"loss", p.loss}});
    by_time.push_back({{"seconds", static_cast<double>(p.step) * a.step_ms / 1000}, {"loss", p.loss}});
  }
  json["loss_by_step"] = std::move(by_step);
  json["by_input_frequency"] = losses_json(a.by_input, a.truth_known);
  json["by_target_frequency"] = losses_json(a.by_target, a.truth_known);
  json["rows_by_frequency"] = rows_json(a.rows, a.touches);
  json["time"] = {{"step_ms", a.step_ms}, {"update_ms", a.update_ms}, {"loss_by_time", std::move(by_time)}};
}

Json arm_json(const SweepArm& arm, const ArmSummary& summary) {
  Json axes = Json::array(), curve = Json::array();
  for (const SweepAxis& axis : arm.axes) axes.push_back({{"key", axis.key}, {"values", axis.values}});
  for (size_t p = 0; p < arm.points.size(); ++p) curve.push_back(point_json(arm.points[p], summary.points[p]));
  Json json{{"name", arm.name}, {"settings", settings_json(arm.settings)}, {"axes", axes}, {"response", curve}};
  json["best"] = summary.best ? Json(arm.points[*summary.best].label) : Json();
  json["winner"] = summary.refused.empty() ? json["best"] : Json();
  json["refused"] = summary.refused.empty() ? Json() : Json(summary.refused);
  if (summary.best) add_best(summary.points[*summary.best].runs, json["at_best"]);
  return json;
}

Json difference_json(const Sweep& sweep, const Comparison& c, const ArmDifference& d) {
  Json json{{"arm", sweep.arms[d.arm].name},
            {"from", sweep.baseline},
            {"by_seed", d.by_seed},
            {"mean", d.mean},
            {"t_interval", interval_json(d.t)},
            {"bootstrap_interval", interval_json(d.bootstrap)},
            {"p", d.p},
            {"p_holm", d.p_holm}};
  if (d.by_seed.empty()) json.erase("by_seed");  // A/A
  const bool settled = c.arms[d.arm].refused.empty() && c.arms[sweep.baseline_arm].refused.empty();
  json["between_winners"] = settled;  // false: at least one of the two stands at its grid's edge
  return json;
}

std::string csv_text(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string csv_line(const SweepArm& arm, const SweepPoint& point, int64_t seed, bool again, const RunResult& run) {
  std::string line = fmt::format("{},{},{},{},", csv_text(arm.name), csv_text(point.label), seed, again ? 1 : 0);
  if (run.diverged) return line + ",1,,,,,,\n";
  const FrequencyLoss& v = run.validation;
  return line + fmt::format("{},0,{},{},{},{},{},{}\n", v.loss, v.truth_known ? fmt::format("{}", v.divergence) : "",
                            run.state_bytes_per_row, run.bytes_per_step, run.touched_rows, run.step_ms, run.update_ms);
}

}  // namespace

std::string results_json(const Sweep& sweep, const Comparison& c) {
  Json json{{"format", "rowan-compare"},    {"version", 1},
            {"name", sweep.name},           {"measure", "validation loss at the end of training, nats a target"},
            {"machine", machine_text()},    {"denormals", denormals_text()},
            {"baseline", sweep.baseline},   {"confidence", sweep.confidence},
            {"resamples", sweep.resamples}, {"seeds", sweep.seeds},
            {"aa_seeds", sweep.aa_seeds},   {"settings", settings_json(sweep.settings)}};
  Json arms = Json::array(), differences = Json::array();
  for (size_t a = 0; a < sweep.arms.size(); ++a) arms.push_back(arm_json(sweep.arms[a], c.arms[a]));
  for (const ArmDifference& d : c.differences) differences.push_back(difference_json(sweep, c, d));
  json["arms"] = std::move(arms);
  json["differences"] = std::move(differences);
  if (!c.aa_runs.empty()) {
    Json losses = Json::array();
    for (const RunResult& run : c.aa_runs) losses.push_back(run.diverged ? Json() : Json(run.validation.loss));
    json["aa"] = {{"losses", losses}};
    if (c.aa) json["aa"]["difference"] = difference_json(sweep, c, *c.aa), json["aa"]["deviation"] = c.aa->deviation;
  }
  return json.dump(1) + "\n";
}

std::string results_csv(const Sweep& sweep, const Comparison& c) {
  std::string text =
      "arm,point,seed,aa,loss,diverged,divergence,state_bytes_per_row,bytes_per_step,touched_rows,step_ms,update_ms\n";
  for (size_t a = 0; a < sweep.arms.size(); ++a)
    for (size_t p = 0; p < sweep.arms[a].points.size(); ++p)
      for (size_t s = 0; s < sweep.seeds.size(); ++s)
        text += csv_line(sweep.arms[a], sweep.arms[a].points[p], sweep.seeds[s], false, c.arms[a].points[p].runs[s]);
  const SweepArm& base = sweep.arms[sweep.baseline_arm];
  for (size_t s = 0; s < c.aa_runs.size(); ++s)
    text += csv_line(base, base.points[*c.arms[sweep.baseline_arm].best], sweep.aa_seeds[s], true, c.aa_runs[s]);
  return text;
}

}  // namespace rowan
