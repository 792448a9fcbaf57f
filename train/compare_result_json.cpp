#include "train/compare_result_json.h"

namespace rowan {
namespace {

using Json = nlohmann::ordered_json;

// Results from before there was "from" have the bucket's number as "log2".
int bucket_from(const Json& item) {
  return item.contains("from") ? bucket_of(item.at("from").get<int64_t>()) : item.at("log2").get<int>();
}

std::map<int, BucketLoss> losses_from(const Json& list) {
  std::map<int, BucketLoss> out;
  for (const Json& item : list)
    out[bucket_from(item)] = {item.at("tokens").get<int64_t>(), item.at("loss").get<double>(), item.value("divergence", 0.0)};
  return out;
}

}  // namespace

Json bucket_json(int bucket) {
  const int64_t from = bucket == 0 ? 0 : int64_t{1} << (bucket - 1);
  return {{"bucket", bucket_text(bucket)}, {"from", from}, {"log2", bucket == 0 ? Json(nullptr) : Json(bucket - 1)}};
}

Json losses_json(const std::map<int, BucketLoss>& buckets, bool truth_known) {
  Json list = Json::array();
  for (const auto& [bucket, b] : buckets) {
    Json item = bucket_json(bucket);
    item["tokens"] = b.tokens;
    item["loss"] = b.loss;
    if (truth_known) item["divergence"] = b.divergence;
    list.push_back(std::move(item));
  }
  return list;
}

Json rows_json(const std::map<int, BucketRows>& rows, const std::map<int, BucketTouches>& touches) {
  Json list = Json::array();
  for (const auto& [bucket, r] : rows) {
    Json item = bucket_json(bucket);
    item["rows"] = r.rows;
    item["norm"] = r.norm;
    item["age"] = r.age;
    item["touch_gap"] = r.touch_gap;
    const auto found = touches.find(bucket);
    item["touches"] = found == touches.end() ? 0 : found->second.touches;
    item["moved"] = found == touches.end() ? 0.0 : found->second.moved;
    list.push_back(std::move(item));
  }
  return list;
}

Json to_json(const RunResult& r) {
  Json json{{"format", "rowan-compare-run"},
            {"version", 1},
            {"weights_digest", r.weights_digest},
            {"data_digest", r.data_digest},
            {"train_fingerprint", r.train_fingerprint},
            {"val_fingerprint", r.val_fingerprint},
            {"diverged", r.diverged}};
  if (r.diverged) {
    json["why"] = r.why;
    return json;
  }
  const FrequencyLoss& v = r.validation;
  json["loss"] = v.loss;
  json["tokens"] = v.tokens;
  if (v.truth_known) json["lowest_loss"] = v.lowest_loss, json["divergence"] = v.divergence;
  json["parameters"] = r.parameters;
  json["state_bytes_per_row"] = r.state_bytes_per_row;
  json["bytes_per_step"] = r.bytes_per_step;
  json["touched_rows"] = r.touched_rows;
  Json curve = Json::array();
  for (const CurvePoint& p : r.curve) curve.push_back({{"step", p.step}, {"loss", p.loss}});
  json["curve"] = std::move(curve);
  json["by_input"] = losses_json(v.by_input, v.truth_known);
  json["by_target"] = losses_json(v.by_target, v.truth_known);
  json["rows"] = rows_json(r.rows, r.touches);
  json["time"] = {{"step_ms", r.step_ms}, {"update_ms", r.update_ms}};
  return json;
}

RunResult run_result_from_json(const Json& json) {
  RunResult r;
  r.weights_digest = json.at("weights_digest").get<std::string>();
  r.data_digest = json.at("data_digest").get<std::string>();
  r.train_fingerprint = json.at("train_fingerprint").get<std::string>();
  r.val_fingerprint = json.at("val_fingerprint").get<std::string>();
  r.diverged = json.at("diverged").get<bool>();
  if (r.diverged) {
    r.why = json.at("why").get<std::string>();
    return r;
  }
  FrequencyLoss& v = r.validation;
  v.loss = json.at("loss").get<double>();
  v.tokens = json.at("tokens").get<int64_t>();
  v.truth_known = json.contains("divergence");
  v.lowest_loss = json.value("lowest_loss", 0.0);
  v.divergence = json.value("divergence", 0.0);
  v.by_input = losses_from(json.at("by_input"));
  v.by_target = losses_from(json.at("by_target"));
  r.parameters = json.at("parameters").get<int64_t>();
  r.state_bytes_per_row = json.at("state_bytes_per_row").get<double>();
  r.bytes_per_step = json.at("bytes_per_step").get<double>();
  r.touched_rows = json.at("touched_rows").get<double>();
  for (const Json& p : json.at("curve")) r.curve.push_back({p.at("step").get<int64_t>(), p.at("loss").get<double>()});
  for (const Json& item : json.at("rows")) {
    const int bucket = bucket_from(item);
    r.rows[bucket] = {item.at("rows").get<int64_t>(), item.at("norm").get<double>(), item.at("age").get<double>(),
                      item.at("touch_gap").get<double>()};
    if (const auto touches = item.at("touches").get<int64_t>(); touches > 0)
      r.touches[bucket] = {touches, item.at("moved").get<double>()};
  }
  r.step_ms = json.at("time").at("step_ms").get<double>();
  r.update_ms = json.at("time").at("update_ms").get<double>();
  return r;
}

}  // namespace rowan
