#include "optim/clip.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/parallel.h"
#include "optim/row_math.h"

namespace rowan {
namespace {

constexpr int64_t kPieceElements = 65536;

// Some elements of a dense gradient, or some rows of a row-sparse one: joined ones, or occurrences to be summed on the way.
struct Piece {
  size_t parameter;
  int64_t begin, end;
  const Real* values = nullptr;
  int64_t width = 0;  // of a row; 0 for elements
  const Occurrences* occurrences = nullptr;
  double sum = 0;
};

double sum_of(const Piece& p) {
  if (p.width == 0) return sum_squares(p.values + p.begin, p.end - p.begin);
  Tensor joined = p.occurrences == nullptr ? Tensor() : Tensor({p.width});
  double sum = 0;
  for (int64_t k = p.begin; k < p.end; ++k) {
    if (p.occurrences != nullptr) sum_run(*p.occurrences, k, 0, p.width, joined.data());
    sum += sum_squares(p.occurrences != nullptr ? joined.data() : p.values + k * p.width, p.width);
  }
  return sum;
}

void cut(const Piece& whole, std::vector<Piece>& pieces) {
  const int64_t a_piece = std::max<int64_t>(1, kPieceElements / std::max<int64_t>(1, whole.width));
  for (Piece p = whole; p.begin < whole.end; p.begin += a_piece) {
    p.end = std::min(whole.end, p.begin + a_piece);
    pieces.push_back(p);
  }
}

// Repeated ids are summed twice where the update sums them again; rows that are read often are joined once for both.
void cut_rows(RowSparseGrad& grad, size_t parameter, std::vector<Piece>& pieces) {
  Piece whole{.parameter = parameter, .begin = 0, .end = 0, .width = std::max<int64_t>(1, grad.width())};
  if (!grad.coalesced() && grad.has_occurrences()) {
    const Occurrences& o = grad.occurrences();
    if (o.count() <= 2 * o.unique()) whole.occurrences = &o;
  }
  if (whole.occurrences == nullptr) {
    grad.coalesce();
    whole.values = grad.values().data();
  }
  whole.end = whole.occurrences != nullptr ? whole.occurrences->unique() : std::ssize(grad.ids());
  cut(whole, pieces);
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
      cut({.parameter = i, .begin = 0, .end = p.grad().size(), .values = p.grad().data()}, pieces);
    } else {
      cut_rows(p.row_grad(), i, pieces);
    }
  }
  parallel_pieces(static_cast<int64_t>(pieces.size()), [&](int64_t i) {
    Piece& piece = pieces[static_cast<size_t>(i)];
    piece.sum = sum_of(piece);
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
