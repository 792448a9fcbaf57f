// Shape: the dimensions of a tensor, at most four. A scalar has rank 0 and one element.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>

#include "core/error.h"

namespace rowan {

class Shape {
 public:
  static constexpr int kMaxRank = 4;

  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) {
    ROWAN_CHECK(dims.size() <= kMaxRank, "[shape] ", dims.size(), " dimensions; at most ", kMaxRank, " are possible");
    for (int64_t d : dims) append(d);
  }

  void append(int64_t dim) {
    ROWAN_CHECK(dim >= 0, "[shape] negative dimension ", dim);
    ROWAN_CHECK(rank_ < kMaxRank, "[shape] more than ", kMaxRank, " dimensions");
    int64_t size = 0;
    ROWAN_CHECK(!__builtin_mul_overflow(size_, dim, &size) && size <= std::numeric_limits<int64_t>::max() / 16,
                "[shape] too many elements: ", size_, " x ", dim);
    size_ = size;
    dims_[static_cast<size_t>(rank_++)] = dim;
  }

  int rank() const { return rank_; }
  int64_t size() const { return size_; }
  int64_t operator[](int i) const {
    ROWAN_ASSERT(i >= 0 && i < rank_);
    return dims_[static_cast<size_t>(i)];
  }
  int64_t back() const { return rank_ == 0 ? 1 : dims_[static_cast<size_t>(rank_ - 1)]; }
  // Rows when all but the last dimension are taken as one: N = B*T of (B,T,D).
  int64_t rows() const { return back() == 0 ? 0 : size_ / back(); }

  bool operator==(const Shape& other) const { return rank_ == other.rank_ && dims_ == other.dims_; }

  std::string str() const {  // "(2, 3)"
    std::string s = "(";
    for (int i = 0; i < rank_; ++i) s += (i ? ", " : "") + std::to_string((*this)[i]);
    return s + ")";
  }

 private:
  std::array<int64_t, kMaxRank> dims_{};
  int rank_ = 0;
  int64_t size_ = 1;
};

inline std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  return out << shape.str();
}

}  // namespace rowan
