#include "core/kernels/kv_cache.h"

#include <algorithm>

#include "core/kernels/attention_tiles.h"
#include "core/parallel.h"

namespace rowan {

KvCache::KvCache(int64_t batch, const AttentionShape& shape, int64_t capacity)
    : shape_(shape),
      batch_(batch),
      capacity_(capacity),
      panels_((capacity + kPanel - 1) / kPanel),
      value_width_(round_up_to_lanes(shape.head_dim)) {
  ROWAN_CHECK(batch >= 0 && capacity > 0, "[kv cache] batch ", batch, " and capacity ", capacity, " must be positive");
  const int64_t heads = batch * shape.kv_heads;
  keys_ = Tensor({heads, panels_, shape.head_dim, kPanel});
  values_ = Tensor({heads, panels_ * kPanel, value_width_});
}

void KvCache::truncate(int64_t length) {
  ROWAN_CHECK(length >= 0 && length <= length_, "[kv cache] cannot truncate to ", length, " positions: ", length_, " are stored");
  length_ = length;
}

const Real* KvCache::key_panels(int64_t b, int64_t kv_head) const {
  return keys_.data() + (b * shape_.kv_heads + kv_head) * panels_ * shape_.head_dim * kPanel;
}

const Real* KvCache::values(int64_t b, int64_t kv_head) const {
  return values_.data() + (b * shape_.kv_heads + kv_head) * panels_ * kPanel * value_width_;
}

void KvCache::append(const Tensor& qkv, const RopeTable* rope) {
  const int64_t count = qkv.shape()[1];
  ROWAN_CHECK(qkv.shape()[0] == batch_ && qkv.shape().back() == shape_.qkv_width(), "[kv cache] qkv is ", qkv.shape(), " but (",
              batch_, ", t, ", shape_.qkv_width(), ") is expected");
  ROWAN_CHECK(count <= capacity_ - length_, "[kv cache] full: ", length_, " positions and ", count,
              " new ones do not fit into its capacity of ", capacity_);
  // Pieces end at panel borders: no two write to one panel.
  const int64_t first_panel = length_ / kPanel, panels = (length_ + count + kPanel - 1) / kPanel - first_panel;
  parallel_pieces(batch_ * panels, [&](int64_t piece) {
    const int64_t panel = first_panel + piece % panels;
    const int64_t begin = std::max(length_, panel * kPanel), end = std::min(length_ + count, (panel + 1) * kPanel);
    append_block(qkv, piece / panels, begin, end, rope);
  });
  length_ += count;
}

void KvCache::append_block(const Tensor& qkv, int64_t b, int64_t begin, int64_t end, const RopeTable* rope) {
  const int64_t width = shape_.qkv_width(), hd = shape_.head_dim, count = qkv.shape()[1];
  for (int64_t head = 0; head < shape_.kv_heads; ++head) {
    const Real* k = qkv.data() + (b * count + begin - length_) * width + (shape_.heads + head) * hd;
    store_keys_values(k, k + shape_.kv_heads * hd, width, end - begin, hd, rope, begin - length_, begin,
                      {const_cast<Real*>(key_panels(b, head)), const_cast<Real*>(values(b, head))});
  }
}

}  // namespace rowan
