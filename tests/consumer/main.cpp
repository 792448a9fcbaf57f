// Trains an embedding table with a rule and an op that this project defines itself, through the installed library. The table has
// to learn 8 numbers for each of 200 ids out of 500; the other rows must not change by a bit. Exit code 0 when all of it held.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "core/ops/gather.h"
#include "core/parallel.h"
#include "core/rng.h"
#include "optim/groups.h"
#include "squared_error.h"

namespace {

constexpr int64_t kRows = 500, kUsed = 200, kWidth = 8, kBatch = 64, kSteps = 2000;

// The numbers to be learned for the rows of a batch: (N,D)
rowan::Tensor targets_of(const rowan::Tensor& truth, const rowan::Ids& ids) {
  rowan::Tensor out(rowan::Shape{ids.size(), kWidth});
  for (int64_t i = 0; i < ids.size(); ++i) std::copy_n(truth.data() + ids[i] * kWidth, kWidth, out.data() + i * kWidth);
  return out;
}

struct Losses {
  double first = 0, last = 0;
};

Losses train(rowan::Parameter& table, const rowan::Tensor& truth) {
  rowan::OptimizerSet optimizers({{"table", rowan::make_optimizer("my_row_rms")}}, rowan::make_optimizer("adamw"),
                                 {{"table", &table}});
  std::printf("%s", optimizers.report_text().c_str());
  Losses losses;
  for (int64_t step = 1; step <= kSteps; ++step) {
    rowan::Ids ids(rowan::Shape{kBatch});
    for (int64_t i = 0; i < kBatch; ++i) ids[i] = static_cast<int32_t>((step * 37 + i * i) % kUsed);  // ids repeat within a batch
    const rowan::Variable loss = squared_error(rowan::gather(table.var, ids), targets_of(truth, ids));
    rowan::backward(loss);
    const double factor = 30 * (1 - static_cast<double>(step - 1) / kSteps);  // of the rule's own 0.001, falling to 0
    optimizers.clip_and_step(0, {.step = step, .lr_factor = factor});
    (step == 1 ? losses.first : losses.last) = static_cast<double>(loss.value().item());
  }
  return losses;
}

}  // namespace

int main() {
  try {
    const rowan::Threads threads(2);
    rowan::Tensor start(rowan::Shape{kRows, kWidth}), truth(rowan::Shape{kRows, kWidth});
    rowan::fill_normal(start, rowan::RandomKey{1, rowan::Purpose::kTest, 0}, 0, 0.02);
    rowan::fill_normal(truth, rowan::RandomKey{2, rowan::Purpose::kTest, 0}, 0, 1);
    rowan::Parameter table(start.clone(), rowan::GradKind::kRowSparse);
    const Losses losses = train(table, truth);
    std::printf("loss %.6f -> %.6f\n", losses.first, losses.last);
    const auto unused = kUsed * kWidth;
    const bool untouched = std::equal(start.data() + unused, start.data() + kRows * kWidth, table.value().data() + unused);
    if (!untouched) std::printf("rows that no batch read have changed\n");
    if (losses.last > losses.first / 1000) std::printf("the loss has not fallen to a thousandth\n");
    return untouched && losses.last <= losses.first / 1000 ? 0 : 1;
  } catch (const rowan::Error& error) {
    std::fprintf(stderr, "consumer: %s\n", error.what());
    return 1;
  }
}
