// Ids: row numbers of a table (token ids, positions) with a shape, usually (B,T). Targets use kIgnored for "not counted".
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/shape.h"

namespace rowan {

inline constexpr int32_t kIgnored = -1;

class Ids {
 public:
  Ids() = default;
  explicit Ids(const Shape& shape) : shape_(shape), values_(static_cast<size_t>(shape.size())) {}
  Ids(const Shape& shape, std::vector<int32_t> values) : shape_(shape), values_(std::move(values)) {
    ROWAN_CHECK(static_cast<int64_t>(values_.size()) == shape.size(), "[ids] ", values_.size(), " values for shape ", shape);
  }

  const Shape& shape() const { return shape_; }
  int64_t size() const { return static_cast<int64_t>(values_.size()); }
  int32_t operator[](int64_t i) const { return values_[static_cast<size_t>(i)]; }
  int32_t& operator[](int64_t i) { return values_[static_cast<size_t>(i)]; }
  std::span<const int32_t> values() const { return values_; }
  std::span<int32_t> values() { return values_; }

 private:
  Shape shape_{0};
  std::vector<int32_t> values_;
};

// Throws unless every id is in [lowest, rows); `what` names the table in the message. Nothing is read or changed before this.
inline void check_ids(const Ids& ids, int64_t rows, const char* what, int32_t lowest = 0) {
  for (int64_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= lowest && ids[i] < rows) continue;
    const bool grid = ids.shape().rank() == 2 && ids.shape().back() > 0;
    const std::string place = grid ? join_text("(", i / ids.shape().back(), ", ", i % ids.shape().back(), ")") : join_text(i);
    fail("[", what, "] id ", ids[i], " at position ", place, " is outside [", lowest, ", ", rows, ")");
  }
}

}  // namespace rowan
