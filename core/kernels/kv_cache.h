// KvCache: the keys and values of positions that were seen already, so that a new position costs one row of attention, not all.
//
//   KvCache cache(1, shape, 1024);                       // per layer
//   Tensor y = attention_decode(qkv, cache, shape, rope);  // core/ops/attention.h; appends, then attends
//
// Keys are stored rotated, in the layout that the tile products read. Memory: about batch * capacity * 2K*hd numbers, taken at
// once. Not here: dropping old positions to make room (sliding windows), other element types.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/tensor.h"

namespace rowan {

class RopeTable;

struct AttentionShape {
  int64_t heads = 1;     // H
  int64_t kv_heads = 1;  // K, divides H
  int64_t head_dim = 1;  // hd
  double scale = 0;      // of the scores; 0: 1/sqrt(hd)

  int64_t queries_per_kv() const { return heads / kv_heads; }
  int64_t qkv_width() const { return (heads + 2 * kv_heads) * head_dim; }
  int64_t out_width() const { return heads * head_dim; }
  double score_scale() const { return scale == 0 ? 1 / std::sqrt(static_cast<double>(head_dim)) : scale; }
};

class KvCache {
 public:
  // Keys stand in panels of kPanel positions, each a (hd, kPanel) matrix: a row holds one element of kPanel keys.
  static constexpr int64_t kPanel = 64;

  KvCache(int64_t batch, const AttentionShape& shape, int64_t capacity);

  int64_t batch() const { return batch_; }
  int64_t capacity() const { return capacity_; }  // positions
  int64_t length() const { return length_; }      // positions stored
  void truncate(int64_t length);                  // forgets the positions from `length` on

  // Appends the keys and values of qkv (batch,t,(H+2K)*hd); rope: null or a table that starts at position length().
  // Throws when they do not fit; the cache is then as before.
  void append(const Tensor& qkv, const RopeTable* rope);

  const Real* key_panels(int64_t b, int64_t kv_head) const;  // (panels, hd, kPanel)
  const Real* values(int64_t b, int64_t kv_head) const;      // (positions, value_width)
  int64_t value_width() const { return value_width_; }       // hd, padded for the tile products

 private:
  void append_block(const Tensor& qkv, int64_t b, int64_t begin, int64_t end, const RopeTable* rope);

  AttentionShape shape_;
  int64_t batch_, capacity_, panels_, value_width_;
  int64_t length_ = 0;
  Tensor keys_;    // (batch*K, panels, hd, kPanel)
  Tensor values_;  // (batch*K, panels*kPanel, value_width)
};

}  // namespace rowan
