// RunResult as JSON and back, to the same bits. Internal to train/compare_*.cpp.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "train/compare_run.h"

namespace rowan {

nlohmann::ordered_json to_json(const RunResult& result);
RunResult run_result_from_json(const nlohmann::ordered_json& json);  // throws nlohmann::json::exception

// {"bucket":"2-3","from":2,"log2":1}: the counts of a bucket, the smallest of them, and its logarithm; null for "never seen".
nlohmann::ordered_json bucket_json(int bucket);
// The members of a bucket table: [{"bucket":"2-3","from":2,"log2":1, ...}, ...]
nlohmann::ordered_json losses_json(const std::map<int, BucketLoss>& buckets, bool truth_known);
nlohmann::ordered_json rows_json(const std::map<int, BucketRows>& rows, const std::map<int, BucketTouches>& touches);

}  // namespace rowan
