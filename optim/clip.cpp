#include "optim/clip.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/parallel.h"
#include "optim/row_math.h"

namespace rowan {
namespace {

struct Piece {
  const Real* values;
  int64_t size;
  size_t parameter;
  double sum = 0;
};

void cut(const Tensor& t, size_t parameter, std::vector<Piece>& pieces) {
  constexpr int64_t kPieceElements = 65536;
  for (int64_t begin = 0; begin < t.size(); begin += kPieceElements)
    pieces.push_back({t.data() + begin, std::min(kPieceElements, t.size() - begin), parameter});
}

}  // namespace

double GradNorm::scale(double clip_norm) const {
  return clip_norm > 0 ? std::min(1.0, clip_norm / (norm + 1e-6)) : 1.0;
}

GradNorm global_grad_norm(std::span<const NamedParameter> parameters) {
  std::vector<Piece> pieces;
  for (size_t i = 0; i < parameters.size(); ++i) {
    Parameter& p = *parameters[i].parameter;
    if (!p.has_grad()) continue;
    if (p.kind() == GradKind::kDense) {
      cut(p.grad(), i, pieces);
    } else {
      p.row_grad().coalesce();
      cut(p.row_grad().values(), i, pieces);
    }
  }
  parallel_pieces(static_cast<int64_t>(pieces.size()), [&](int64_t i) {
    Piece& piece = pieces[static_cast<size_t>(i)];
    piece.sum = sum_squares(piece.values, piece.size);
  });
  GradNorm result;
  double total = 0;
  for (const Piece& piece : pieces) {
    total += piece.sum;
    if (!result.finite || std::isfinite(total)) continue;
    result.finite = false;
    result.non_finite = parameters[piece.parameter].name;
  }
  result.norm = std::sqrt(total);
  return result;
}

}  // namespace rowan
