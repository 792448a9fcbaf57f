#include "core/tensor.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <new>

#include "core/buffer_pool.h"

namespace rowan {
namespace {

// Buffers by size class, most recently returned first (it is the likeliest to be in cache). A class is a power of two cut in
// eight, so at most an eighth is wasted and sequences of slightly different lengths share buffers.
class BufferPool {
 public:
  static BufferPool& instance() {
    static BufferPool* pool = new BufferPool;  // never destroyed: tensors with static lifetime may outlive any order we choose
    return *pool;
  }

  static size_t size_class(size_t bytes) {
    if (bytes <= kSmallest) return kSmallest;
    const size_t step = std::max(kSmallest, std::bit_floor(bytes - 1) / 8);
    return (bytes + step - 1) / step * step;
  }

  void* take(size_t bytes) {
    const std::lock_guard lock(mutex_);
    std::vector<void*>& free = free_[bytes];
    void* p = nullptr;
    if (!free.empty()) {
      p = free.back();
      free.pop_back();
    } else {
      p = allocate(bytes);
    }
    stats_.bytes_in_use += static_cast<int64_t>(bytes);
    stats_.peak_bytes_in_use = std::max(stats_.peak_bytes_in_use, stats_.bytes_in_use);
    return p;
  }

  void give_back(void* p, size_t bytes) noexcept {
    const std::lock_guard lock(mutex_);
    stats_.bytes_in_use -= static_cast<int64_t>(bytes);
    free_.at(bytes).push_back(p);  // has room: allocate() reserved a place for every buffer of the class
  }

  PoolStats stats() {
    const std::lock_guard lock(mutex_);
    return stats_;
  }
  void reset_peak() {
    const std::lock_guard lock(mutex_);
    stats_.peak_bytes_in_use = stats_.bytes_in_use;
  }
  void release() {
    const std::lock_guard lock(mutex_);
    for (auto& [bytes, free] : free_) {
      for (void* p : free) std::free(p);
      stats_.bytes_held -= static_cast<int64_t>(bytes * free.size());
      total_[bytes] -= free.size();
      free.clear();
    }
  }

 private:
  static constexpr size_t kSmallest = 256;
  static constexpr size_t kHuge = size_t{4} << 20;
  static constexpr size_t kHugePage = size_t{2} << 20;

  void* allocate(size_t bytes) {
    const bool huge = bytes >= kHuge;
    const size_t alignment = huge ? kHugePage : 64;
    const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
    void* p = std::aligned_alloc(alignment, rounded);
    if (p == nullptr)
      throw Error(join_text("[tensor] out of memory: ", bytes, " bytes wanted, ", stats_.bytes_held, " bytes held already"),
                  ErrorKind::kData);
    if (huge) advise_huge_pages(static_cast<char*>(p), bytes, rounded);
    std::vector<void*>& free = free_[bytes];
    if (++total_[bytes] > free.capacity()) free.reserve(2 * total_[bytes]);  // doubling: one more each time would be quadratic
    ++stats_.system_allocations;
    stats_.bytes_held += static_cast<int64_t>(bytes);
    return p;
  }

  // Hints: fewer TLB misses where the kernel agrees. The rest behind the last whole page of 2 MB is left to small ones: a weight of
  // 9 MB would take 10, four times over with its gradient and moments.
  static void advise_huge_pages(char* p, size_t bytes, size_t rounded) {
    const size_t whole = bytes / kHugePage * kHugePage;
    madvise(p, whole, MADV_HUGEPAGE);
    if (whole < rounded) madvise(p + whole, rounded - whole, MADV_NOHUGEPAGE);
  }

  std::mutex mutex_;
  std::map<size_t, std::vector<void*>> free_;
  std::map<size_t, size_t> total_;  // buffers of a class, in use or free
  PoolStats stats_;
};

}  // namespace

Tensor::Tensor(const Shape& shape) : shape_(shape) {
  const size_t bytes = BufferPool::size_class(static_cast<size_t>(shape.size()) * sizeof(Real));
  void* p = BufferPool::instance().take(bytes);
  data_ = std::shared_ptr<Real[]>(static_cast<Real*>(p), [bytes](Real* q) { BufferPool::instance().give_back(q, bytes); });
}

Tensor Tensor::full(const Shape& shape, Real value) {
  Tensor t(shape);
  t.fill(value);
  return t;
}

Tensor Tensor::from(const Shape& shape, std::span<const Real> values) {
  ROWAN_CHECK(static_cast<int64_t>(values.size()) == shape.size(), "[tensor] ", values.size(), " values for shape ", shape);
  Tensor t(shape);
  std::copy(values.begin(), values.end(), t.data());
  return t;
}

std::span<Real> Tensor::row(int64_t i) {
  ROWAN_ASSERT(i >= 0 && i < shape_.rows());
  return {data() + i * shape_.back(), static_cast<size_t>(shape_.back())};
}

std::span<const Real> Tensor::row(int64_t i) const {
  ROWAN_ASSERT(i >= 0 && i < shape_.rows());
  return {data() + i * shape_.back(), static_cast<size_t>(shape_.back())};
}

Real Tensor::item() const {
  ROWAN_CHECK(size() == 1, "[tensor] item() of a tensor of shape ", shape_);
  return data_[0];
}

Tensor Tensor::reshape(const Shape& shape) const {
  ROWAN_CHECK(shape.size() == size(), "[tensor] reshape of ", shape_, " to ", shape, ": the sizes differ");
  Tensor t = *this;
  t.shape_ = shape;
  return t;
}

Tensor Tensor::clone() const {
  if (empty()) return {};
  Tensor t(shape_);
  std::memcpy(t.data(), data(), static_cast<size_t>(size()) * sizeof(Real));
  return t;
}

void Tensor::fill(Real value) {
  std::fill_n(data(), size(), value);
}

PoolStats pool_stats() {
  return BufferPool::instance().stats();
}
void reset_pool_peak() {
  BufferPool::instance().reset_peak();
}
int64_t pooled_bytes(int64_t bytes) {
  return static_cast<int64_t>(BufferPool::size_class(static_cast<size_t>(bytes)));
}
void release_pool() {
  BufferPool::instance().release();
}

}  // namespace rowan
