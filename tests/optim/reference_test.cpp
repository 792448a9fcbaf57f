// Optimizers against tables that PyTorch computed in float64, after every step.
#include "tests/support/reference.h"

#include <gtest/gtest.h>

#include "core/parallel.h"
#include "tests/support/compare.h"
#include "tests/support/optim.h"

namespace rowan {
namespace {

constexpr double kTolerance = kRealIsDouble ? 1e-9 : 2e-5;

struct EmbeddingRun {
  explicit EmbeddingRun(const std::string& file)
      : reference(file),
        steps(reference.shape("ids")[0]),
        tokens(reference.shape("ids")[1]),
        rows(reference.shape("init")[0]),
        width(reference.shape("init")[1]),
        ids(reference.ints("ids")),
        dy(reference.doubles("dy")),
        table(reference.doubles("table")) {}

  std::vector<int32_t> ids_of(int64_t step) const {
    const auto begin = ids.begin() + step * tokens;
    return {begin, begin + tokens};
  }
  Tensor dy_of(int64_t step) const {
    Tensor t({tokens, width});
    for (int64_t i = 0; i < t.size(); ++i) t.data()[i] = static_cast<Real>(dy[static_cast<size_t>(step * t.size() + i)]);
    return t;
  }
  std::vector<double> table_after(int64_t step) const {
    const auto begin = table.begin() + step * rows * width;
    return {begin, begin + rows * width};
  }

  test::Reference reference;
  int64_t steps, tokens, rows, width;
  std::vector<int32_t> ids;
  std::vector<double> dy, table;
};

test::FieldValues adam_fields(const test::Reference& r) {
  return {{"lr", r.number("lr")}, {"beta1", r.number("beta1")}, {"beta2", r.number("beta2")}, {"eps", r.number("eps")}};
}

TEST(Reference, sparse_adam_follows_torch_at_every_step) {
  const EmbeddingRun run("sparse_adam.h5");
  Threads threads(2);
  Parameter p(run.reference.tensor("init"), GradKind::kRowSparse);
  const auto rule = test::make_rule("sparse_adam", adam_fields(run.reference));
  for (int64_t s = 0; s < run.steps; ++s) {
    test::give_row_grad(p, run.ids_of(s), run.dy_of(s));
    rule->step("table", p, {.step = s + 1});
    test::expect_close(p.value(), run.table_after(s), kTolerance, "step " + std::to_string(s + 1));
  }
}

// The same numbers through a row-sparse and through a dense gradient: what adamw means does not depend on how the gradient comes.
void follow_adam_dense(GradKind kind) {
  const EmbeddingRun run("adam_dense.h5");
  const std::vector<double> lr = run.reference.doubles("lr");
  Threads threads(2);
  Parameter p(run.reference.tensor("init"), kind);
  test::FieldValues fields = adam_fields(run.reference);
  fields["weight_decay"] = run.reference.number("weight_decay");
  fields["lr"] = 1.0;
  const auto rule = test::make_rule("adamw", fields);
  for (int64_t s = 0; s < run.steps; ++s) {
    if (kind == GradKind::kRowSparse) {
      test::give_row_grad(p, run.ids_of(s), run.dy_of(s));
    } else {
      RowSparseGrad rows(run.rows, run.width);
      rows.append(Ids({run.tokens}, run.ids_of(s)), run.dy_of(s));
      rows.coalesce();
      p.grad() = Tensor::zeros(p.shape());
      rows.add_to(p.grad());
    }
    rule->step("table", p, {.step = s + 1, .lr_factor = lr[static_cast<size_t>(s)]});
    test::expect_close(p.value(), run.table_after(s), kTolerance, "step " + std::to_string(s + 1));
  }
}

TEST(Reference, adamw_with_a_dense_gradient_follows_torch_at_every_step) {
  follow_adam_dense(GradKind::kDense);
}
TEST(Reference, adamw_with_a_row_sparse_gradient_follows_torch_at_every_step) {
  follow_adam_dense(GradKind::kRowSparse);
}

TEST(Reference, files_give_names_shapes_and_settings_of_every_kind) {
  const test::Reference r("model_gpt2.h5");
  EXPECT_FALSE(r.names("init").empty());
  EXPECT_EQ(r.shape("init/embed.tokens.weight"), (std::vector<int64_t>{r.integer("vocab_size"), r.integer("d_model")}));
  EXPECT_TRUE(r.flag("tied"));
  EXPECT_EQ(r.text("positions"), "learned");
  EXPECT_GT(r.number("lr"), 0);
  EXPECT_THROW(r.doubles("no_such_thing"), Error);
}

}  // namespace
}  // namespace rowan
