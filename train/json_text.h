// parse_json: JSON from outside. A parser's memory is many times the text's when that is all brackets: depth and number of values
// have a limit, which is looked at while the text is read.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/error.h"

namespace rowan {

inline constexpr int kDeepestJson = 32;
inline constexpr int64_t kMostJsonValues = int64_t{1} << 20;

// Json is a nlohmann::basic_json. Throws its exceptions, and Error (kData) beyond the limits.
template <class Json>
Json parse_json(std::string_view text) {
  int64_t values = 0;
  return Json::parse(text, [&values](int depth, typename Json::parse_event_t, Json&) {
    if (depth > kDeepestJson) fail_data("[json] brackets are nested deeper than ", kDeepestJson);
    if (++values > kMostJsonValues) fail_data("[json] there are more than ", kMostJsonValues, " values");
    return true;
  });
}

// A line of metrics.jsonl, an object with a text "event" and, where there is a "step", an integer; null for any other.
template <class Json>
Json parse_event(std::string_view line) {
  try {
    Json event = parse_json<Json>(line);
    if (!event.is_object() || !event.contains("event") || !event["event"].is_string()) return nullptr;
    if (event.contains("step") && !event["step"].is_number_integer()) return nullptr;
    return event;
  } catch (const typename Json::exception&) {
    return nullptr;
  } catch (const Error&) {
    return nullptr;
  }
}

}  // namespace rowan
