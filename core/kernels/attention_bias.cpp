#include "core/kernels/attention_bias.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/kernels/attention_tiles.h"
#include "core/kernels/reduce.h"
#include "core/parallel.h"

namespace rowan {
namespace {

using Rows = std::vector<double>;  // (T, hd)

// One key/value head of one sequence, all in double. The formulas are those of attention_backward.cpp.
class KeyBiasOfHead {
 public:
  KeyBiasOfHead(const AttentionSaved& saved, const Tensor& dy, const AttentionShape& shape, const Rope& rope,
                const AttentionDropout& dropout, int64_t index)
      : saved_(saved),
        dy_(dy),
        shape_(shape),
        rope_(rope),
        dropout_(dropout),
        b_(index / shape.kv_heads),
        kv_(index % shape.kv_heads),
        length_(dy.shape()[1]),
        hd_(shape.head_dim) {}

  void run(double* out) {  // (hd)
    const Rows k = turned(qkv_head(shape_.heads + kv_)), v = qkv_head(shape_.heads + shape_.kv_heads + kv_);
    Rows dk(static_cast<size_t>(length_ * hd_), 0.0);  // of the turned keys
    for (int64_t g = 0; g < shape_.queries_per_kv(); ++g) {
      const int64_t head = kv_ * shape_.queries_per_kv() + g;
      add_query_head(head, turned(qkv_head(head)), k, v, dk);
    }
    turn(dk, -1);
    std::fill_n(out, hd_, 0.0);
    for (int64_t j = 0; j < length_; ++j)
      for (int64_t d = 0; d < hd_; ++d) out[d] += dk[static_cast<size_t>(j * hd_ + d)];
  }

 private:
  Rows copy(const Real* from, int64_t ld) const {
    Rows rows(static_cast<size_t>(length_ * hd_));
    for (int64_t t = 0; t < length_; ++t)
      for (int64_t d = 0; d < hd_; ++d) rows[static_cast<size_t>(t * hd_ + d)] = static_cast<double>(from[t * ld + d]);
    return rows;
  }
  Rows qkv_head(int64_t head) const {
    return copy(saved_.qkv.data() + b_ * length_ * shape_.qkv_width() + head * hd_, shape_.qkv_width());
  }
  Rows turned(Rows rows) const {
    turn(rows, 1);
    return rows;
  }

  void turn(Rows& rows, double direction) const {
    const int64_t pairs = rope_.rotated / 2;
    for (int64_t i = 0; i < pairs; ++i) {
      const double frequency = std::pow(rope_.theta, -2.0 * static_cast<double>(i) / static_cast<double>(rope_.rotated));
      const int64_t first = rope_.interleaved ? 2 * i : i, second = rope_.interleaved ? 2 * i + 1 : i + pairs;
      for (int64_t t = 0; t < length_; ++t) {
        const double angle = direction * static_cast<double>(t) * frequency, c = std::cos(angle), s = std::sin(angle);
        double &a = rows[static_cast<size_t>(t * hd_ + first)], &z = rows[static_cast<size_t>(t * hd_ + second)];
        const double turned_a = a * c - z * s;
        z = z * c + a * s;
        a = turned_a;
      }
    }
  }

  double dot(const Rows& a, int64_t i, const Rows& b, int64_t j) const {
    double sum = 0;
    for (int64_t d = 0; d < hd_; ++d) sum += a[static_cast<size_t>(i * hd_ + d)] * b[static_cast<size_t>(j * hd_ + d)];
    return sum;
  }

  void add_query_head(int64_t head, const Rows& q, const Rows& k, const Rows& v, Rows& dk) const {
    const Rows dy = copy(dy_.data() + b_ * length_ * shape_.out_width() + head * hd_, shape_.out_width());
    const Tensor mask = mask_of(head);
    Rows p(static_cast<size_t>(length_)), dp(static_cast<size_t>(length_));
    for (int64_t i = 0; i < length_; ++i) {
      for (int64_t j = 0; j <= i; ++j) p[static_cast<size_t>(j)] = shape_.score_scale() * dot(q, i, k, j);
      softmax(p, i + 1);
      double delta = 0;
      for (int64_t j = 0; j <= i; ++j) {
        const double kept = mask.empty() ? 1.0 : static_cast<double>(mask.row(i)[static_cast<size_t>(j)]);
        dp[static_cast<size_t>(j)] = kept * dot(dy, i, v, j);
        delta += p[static_cast<size_t>(j)] * dp[static_cast<size_t>(j)];
      }
      for (int64_t j = 0; j <= i; ++j) {
        const double ds = shape_.score_scale() * p[static_cast<size_t>(j)] * (dp[static_cast<size_t>(j)] - delta);
        for (int64_t d = 0; d < hd_; ++d) dk[static_cast<size_t>(j * hd_ + d)] += ds * q[static_cast<size_t>(i * hd_ + d)];
      }
    }
  }

  static void softmax(Rows& x, int64_t n) {
    const double largest = *std::max_element(x.begin(), x.begin() + n);
    double sum = 0;
    for (int64_t j = 0; j < n; ++j) sum += x[static_cast<size_t>(j)] = std::exp(x[static_cast<size_t>(j)] - largest);
    for (int64_t j = 0; j < n; ++j) x[static_cast<size_t>(j)] /= sum;
  }

  Tensor mask_of(int64_t head) const {  // (T, ld) of 0 or 1/(1-p); empty without dropout
    if (dropout_.p == 0) return {};
    Tensor mask({length_, kExactKeyBias});
    const ScoreTile whole{mask.data(), kExactKeyBias, length_, length_, 0};
    dropout_tile(dropout_, length_, (b_ * shape_.heads + head) * length_, 0, whole, mask.data());
    return mask;
  }

  const AttentionSaved& saved_;
  const Tensor& dy_;
  const AttentionShape& shape_;
  const Rope& rope_;
  const AttentionDropout& dropout_;
  int64_t b_, kv_, length_, hd_;
};

// sums (K*hd)
std::vector<double> exact_key_bias(const AttentionSaved& saved, const Tensor& dy, const AttentionShape& shape, const Rope& rope,
                                   const AttentionDropout& dropout) {
  const int64_t width = shape.kv_heads * shape.head_dim, heads = dy.shape()[0] * shape.kv_heads;
  std::vector<double> parts(static_cast<size_t>(heads * shape.head_dim)), sums(static_cast<size_t>(width), 0.0);
  parallel_pieces(heads,
                  [&](int64_t i) { KeyBiasOfHead(saved, dy, shape, rope, dropout, i).run(parts.data() + i * shape.head_dim); });
  for (size_t i = 0; i < parts.size(); ++i) sums[i % sums.size()] += parts[i];
  return sums;
}

}  // namespace

void attention_bias_backward(const AttentionSaved& saved, const Tensor& dy, const AttentionShape& shape, const RopeTable* rope,
                             const AttentionDropout& dropout, const Tensor& dqkv, Tensor& dbias) {
  Tensor sums = Tensor::zeros(dbias.shape());
  add_column_sums(dqkv.data(), dqkv.shape().rows(), shape.qkv_width(), sums.data());
  const int64_t keys = shape.heads * shape.head_dim, width = shape.kv_heads * shape.head_dim;
  if (rope == nullptr || rope->rope().rotated == 0) {
    // A gradient that is not finite must still be seen as one: 0 * x is NaN then.
    for (int64_t j = keys; j < keys + width; ++j) sums.data()[j] *= 0;
  } else if (dy.shape()[1] <= kExactKeyBias) {
    const std::vector<double> exact = exact_key_bias(saved, dy, shape, rope->rope(), dropout);
    for (int64_t j = 0; j < width; ++j) sums.data()[keys + j] = static_cast<Real>(exact[static_cast<size_t>(j)]);
  }
  for (int64_t j = 0; j < sums.size(); ++j) dbias.data()[j] += sums.data()[j];
}

}  // namespace rowan
