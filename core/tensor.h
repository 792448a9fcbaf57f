// Tensor: contiguous row-major storage of Real, at most 4 dimensions.
//
// A copy is a handle: both names see the same numbers; clone() makes new ones. Buffers are 64-byte aligned, come from a pool
// and go back to it, so that a warm training step asks the system for nothing. Not here: strides, views of a part,
// broadcasting, other element types.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/real.h"
#include "core/shape.h"

namespace rowan {

class Tensor {
 public:
  Tensor() = default;                   // no storage; empty() is true
  explicit Tensor(const Shape& shape);  // values are not initialized

  static Tensor zeros(const Shape& shape) { return full(shape, 0); }
  static Tensor full(const Shape& shape, Real value);
  static Tensor from(const Shape& shape, std::span<const Real> values);  // copies; sizes must agree
  static Tensor scalar(Real value) { return full({}, value); }

  bool empty() const { return data_ == nullptr; }  // true for "no tensor"; a tensor of zero elements has storage
  const Shape& shape() const { return shape_; }
  int64_t size() const { return empty() ? 0 : shape_.size(); }

  Real* data() { return data_.get(); }
  const Real* data() const { return data_.get(); }
  std::span<Real> values() { return {data_.get(), static_cast<size_t>(size())}; }
  std::span<const Real> values() const { return {data_.get(), static_cast<size_t>(size())}; }
  std::span<Real> row(int64_t i);  // the i-th run of the last dimension
  std::span<const Real> row(int64_t i) const;
  Real item() const;  // the value of a tensor of one element

  Tensor reshape(const Shape& shape) const;  // the same storage under another shape of equal size
  Tensor clone() const;
  void fill(Real value);
  bool shared() const { return data_.use_count() > 1; }  // another handle sees this storage

 private:
  Shape shape_;
  std::shared_ptr<Real[]> data_;
};

// What the buffer pool holds and did. `system_allocations` stands still over a warm step.
struct PoolStats {
  int64_t system_allocations = 0;  // buffers that had to come from the system
  int64_t bytes_in_use = 0;
  int64_t peak_bytes_in_use = 0;  // since the start or reset_pool_peak()
  int64_t bytes_held = 0;         // in use and waiting for reuse
};
PoolStats pool_stats();
void reset_pool_peak();
void release_pool();  // gives waiting buffers back to the system

}  // namespace rowan
