// Attention as its formula says it, in double, with whole (T,T) matrices: what the tiled kernels are compared with.
#pragma once

#include <cmath>
#include <numbers>
#include <vector>

#include "core/kernels/attention.h"

namespace rowan::test {

struct PlainAttention {
  int64_t batch, length;
  AttentionShape shape;
  const Rope* rope;
  std::vector<double> qkv, out, p;  // qkv with q and k rotated; p (B,H,T,T)

  double& x(int64_t b, int64_t t, int64_t head, int64_t d) { return at(qkv, b, t, head, d); }
  double& at(std::vector<double>& v, int64_t b, int64_t t, int64_t head, int64_t d) const {
    return v[static_cast<size_t>(((b * length + t) * (shape.heads + 2 * shape.kv_heads) + head) * shape.head_dim + d)];
  }
  double& prob(int64_t b, int64_t h, int64_t i, int64_t j) {
    return p[static_cast<size_t>(((b * shape.heads + h) * length + i) * length + j)];
  }
  size_t out_index(int64_t b, int64_t t, int64_t h, int64_t d) const {
    return static_cast<size_t>(((b * length + t) * shape.heads + h) * shape.head_dim + d);
  }

  // Turns q and k of v by sign times the angle of their position.
  void turn(std::vector<double>& v, double sign) const {
    if (rope == nullptr) return;
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t t = 0; t < length; ++t)
        for (int64_t head = 0; head < shape.heads + shape.kv_heads; ++head)
          for (int64_t i = 0; i < rope->rotated / 2; ++i) {
            const double angle = sign * static_cast<double>(t) *
                                 std::pow(rope->theta, -2.0 * static_cast<double>(i) / static_cast<double>(rope->rotated));
            double& first = at(v, b, t, head, rope->interleaved ? 2 * i : i);
            double& second = at(v, b, t, head, rope->interleaved ? 2 * i + 1 : i + rope->rotated / 2);
            const double u = first, w = second;
            first = u * std::cos(angle) - w * std::sin(angle);
            second = w * std::cos(angle) + u * std::sin(angle);
          }
  }

  void forward_row(int64_t b, int64_t h, int64_t i) {
    const int64_t key = shape.heads + h / shape.queries_per_kv(), value = key + shape.kv_heads;
    double largest = -INFINITY, sum = 0;
    for (int64_t j = 0; j <= i; ++j) {
      double score = 0;
      for (int64_t d = 0; d < shape.head_dim; ++d) score += x(b, i, h, d) * x(b, j, key, d);
      prob(b, h, i, j) = score * shape.score_scale();
      largest = std::max(largest, prob(b, h, i, j));
    }
    for (int64_t j = 0; j <= i; ++j) sum += prob(b, h, i, j) = std::exp(prob(b, h, i, j) - largest);
    for (int64_t j = 0; j <= i; ++j) {
      prob(b, h, i, j) /= sum;
      for (int64_t d = 0; d < shape.head_dim; ++d) out[out_index(b, i, h, d)] += prob(b, h, i, j) * x(b, j, value, d);
    }
  }

  void backward_row(int64_t b, int64_t h, int64_t i, const Tensor& dy, std::vector<double>& grad) {
    const int64_t key = shape.heads + h / shape.queries_per_kv(), value = key + shape.kv_heads;
    std::vector<double> dp(static_cast<size_t>(i + 1), 0);
    double mean = 0;
    for (int64_t j = 0; j <= i; ++j) {
      for (int64_t d = 0; d < shape.head_dim; ++d) {
        const double g = static_cast<double>(dy.data()[out_index(b, i, h, d)]);
        at(grad, b, j, value, d) += prob(b, h, i, j) * g;
        dp[static_cast<size_t>(j)] += g * x(b, j, value, d);
      }
      mean += prob(b, h, i, j) * dp[static_cast<size_t>(j)];
    }
    for (int64_t j = 0; j <= i; ++j) {
      const double ds = prob(b, h, i, j) * (dp[static_cast<size_t>(j)] - mean) * shape.score_scale();
      for (int64_t d = 0; d < shape.head_dim; ++d) {
        at(grad, b, i, h, d) += ds * x(b, j, key, d);
        at(grad, b, j, key, d) += ds * x(b, i, h, d);
      }
    }
  }

  template <class Row>
  void each_row(Row&& row) const {
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t h = 0; h < shape.heads; ++h)
        for (int64_t i = 0; i < length; ++i) row(b, h, i);
  }

  std::vector<double> backward(const Tensor& dy) {  // the gradient of qkv before rotation
    std::vector<double> grad(qkv.size(), 0);
    each_row([&](int64_t b, int64_t h, int64_t i) { backward_row(b, h, i, dy, grad); });
    turn(grad, -1);
    return grad;
  }
};

inline PlainAttention plain_attention(const Tensor& qkv, const AttentionShape& shape, const Rope* rope) {
  const int64_t batch = qkv.shape()[0], length = qkv.shape()[1];
  PlainAttention plain{batch, length, shape, rope, {qkv.values().begin(), qkv.values().end()}, {}, {}};
  plain.out.assign(static_cast<size_t>(batch * length * shape.out_width()), 0);
  plain.p.assign(static_cast<size_t>(batch * shape.heads * length * length), 0);
  plain.turn(plain.qkv, 1);
  plain.each_row([&](int64_t b, int64_t h, int64_t i) { plain.forward_row(b, h, i); });
  return plain;
}

}  // namespace rowan::test
