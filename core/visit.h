// One idiom to learn: everything that is listed, printed, parsed, saved or loaded goes through one visit().
//
//   void visit(FieldVisitor& v) override {
//     v("eps", eps_, "added outside the root", at_least(0));
//   }
//
// serves the config file, --set, `rowan config explain`, the resolved copy and the checkpoint.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace rowan {

// What a field accepts. Numbers: low..high, ends included unless open. Strings: one of choices, when there are any.
struct Limits {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_open = false;
  bool high_open = false;
  std::vector<std::string> choices = {};
};
// Whether a number lies within; NaN and infinities never do.
inline bool within(double value, const Limits& l) {
  if (!std::isfinite(value)) return false;
  const bool high_enough = l.low_open ? value > l.low : value >= l.low;
  const bool low_enough = l.high_open ? value < l.high : value <= l.high;
  return high_enough && low_enough;
}
inline Limits at_least(double low) {
  return {.low = low};
}
inline Limits above(double low) {
  return {.low = low, .low_open = true};
}
inline Limits between(double low, double high) {
  return {.low = low, .high = high};
}
inline Limits from_below(double low, double high) {
  return {.low = low, .high = high, .high_open = true};
}  // [low, high)
inline Limits one_of(std::vector<std::string> choices) {
  return {.choices = std::move(choices)};
}

// Settings. Numbers are double and int64_t whatever Real is, so a config means the same in every build.
struct FieldVisitor {
  virtual ~FieldVisitor() = default;
  virtual void operator()(const char* name, double& value, const char* help, const Limits& limits = {}) = 0;
  virtual void operator()(const char* name, int64_t& value, const char* help, const Limits& limits = {}) = 0;
  virtual void operator()(const char* name, bool& value, const char* help) = 0;
  virtual void operator()(const char* name, std::string& value, const char* help, const Limits& limits = {}) = 0;
  virtual void operator()(const char* name, std::vector<std::string>& value, const char* help) = 0;
};

// State that a checkpoint keeps, in both directions: a loading visitor overwrites what it is given. A loaded tensor or array has
// the shape it had when saved; the owner checks it.
struct StateVisitor {
  virtual ~StateVisitor() = default;
  virtual bool loading() const = 0;
  virtual void operator()(const std::string& name, Tensor& value) = 0;
  virtual void operator()(const std::string& name, int64_t& value) = 0;
  virtual void operator()(const std::string& name, double& value) = 0;
  virtual void operator()(const std::string& name, std::vector<int32_t>& value) = 0;
  virtual void operator()(const std::string& name, std::vector<int64_t>& value) = 0;
  virtual void operator()(const std::string& name, std::vector<double>& value) = 0;
  virtual void operator()(const std::string& name, std::vector<uint8_t>& value) = 0;
};

}  // namespace rowan
