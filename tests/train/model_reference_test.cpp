// Whole models against PyTorch's values in float64: logits, gradients, losses, norms and parameters over AdamW steps. Every
// model_*.h5 of the reference folder is a test; all sizes and settings are the file's own.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "layers/gpt.h"
#include "optim/groups.h"
#include "tests/support/compare.h"
#include "tests/support/optim.h"
#include "tests/support/reference.h"
#include "train/session.h"

namespace rowan {
namespace {

constexpr double kTolerance = kRealIsDouble ? 1e-9 : 2e-5;  // relative to an array's largest value

GptConfig model_config(const test::Reference& r) {
  GptConfig c;
  c.vocab_size = r.integer("vocab_size");
  c.d_model = r.integer("d_model");
  c.n_layer = r.integer("n_layer");
  c.n_head = r.integer("n_head");
  c.n_kv_head = r.integer("n_kv_head");
  c.d_ff = r.integer("d_ff");
  c.max_seq_len = r.integer("max_seq_len");
  c.positions = r.text("positions");
  c.norm = r.text("norm");
  c.norm_eps = r.number("norm_eps");
  c.mlp = r.text("mlp");
  c.bias = r.flag("bias");
  c.tied = r.flag("tied");
  c.rope.theta = r.number("rope_theta");
  c.rope.style = r.text("rope_style");
  return c;
}

Tensor dense_gradient(Parameter& p) {
  if (p.kind() == GradKind::kDense) return p.grad().clone();
  Tensor dense = Tensor::zeros(p.shape());
  p.row_grad().coalesce();
  if (!p.row_grad().empty()) p.row_grad().add_to(dense);
  return dense;
}

class ModelReference : public ::testing::TestWithParam<std::string> {
 protected:
  ModelReference() : reference_(GetParam()), model_(model_config(reference_), 0) {
    for (const NamedParameter& p : named_parameters(model_)) p.parameter->value() = reference_.tensor("init/" + p.name);
  }

  Ids batch(const std::string& name, int64_t step) {
    const std::vector<int64_t> shape = reference_.shape(name);
    const std::vector<int32_t> all = reference_.ints(name);
    const int64_t size = shape[1] * shape[2];
    return Ids({shape[1], shape[2]}, {all.begin() + step * size, all.begin() + (step + 1) * size});
  }

  Variable loss_of(int64_t step, HeadStats* stats) {
    const Ids targets = batch("targets", step);
    const auto counted = std::count_if(targets.values().begin(), targets.values().end(), [](int32_t t) { return t != kIgnored; });
    return model_.loss(batch("tokens", step), targets, 1.0 / static_cast<double>(counted), {}, stats);
  }

  std::shared_ptr<Optimizer> adamw() {
    test::FieldValues fields;
    for (const char* name : {"lr", "beta1", "beta2", "eps", "weight_decay"}) fields[name] = reference_.number(name);
    return test::make_rule("adamw", fields);
  }

  test::Reference reference_;
  Gpt model_;
};

TEST_P(ModelReference, has_the_parameters_of_the_file_and_no_others) {
  std::vector<std::string> names;
  for (const NamedParameter& p : named_parameters(model_)) names.push_back(p.name);
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, reference_.names("init"));
}

TEST_P(ModelReference, logits_agree) {
  test::expect_close(model_.logits(batch("tokens", 0)), reference_.doubles("logits"), kTolerance, "logits");
}

TEST_P(ModelReference, gradients_of_the_first_step_agree) {
  HeadStats stats;
  backward(loss_of(0, &stats));
  for (const NamedParameter& p : named_parameters(model_))
    test::expect_close(dense_gradient(*p.parameter), reference_.doubles("grad/" + p.name), kTolerance, "grad/" + p.name);
}

TEST_P(ModelReference, losses_norms_and_final_parameters_agree_over_all_steps) {
  OptimizerSet optimizers({}, adamw(), named_parameters(model_));
  std::vector<double> losses, norms;
  for (int64_t step = 0; step < reference_.integer("steps"); ++step) {
    HeadStats stats;
    const Variable loss = loss_of(step, &stats);
    losses.push_back(stats.loss_sum / static_cast<double>(stats.counted));
    backward(loss);
    norms.push_back(optimizers.clip_and_step(reference_.number("clip_norm"), {.step = step + 1}).norm);
  }
  test::expect_close(losses, reference_.doubles("loss"), kTolerance, "loss");
  test::expect_close(norms, reference_.doubles("grad_norm"), kTolerance, "grad_norm");
  for (const NamedParameter& p : named_parameters(model_))
    test::expect_close(p.parameter->value(), reference_.doubles("final/" + p.name), kTolerance, "final/" + p.name);
}

std::vector<std::string> model_files() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(test::reference_path(""))) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("model_") && name.ends_with(".h5")) files.push_back(name);
  }
  std::sort(files.begin(), files.end());
  return files;
}

TEST(ModelReferenceFolder, holds_at_least_one_model) {
  EXPECT_GE(model_files().size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(Files, ModelReference, ::testing::ValuesIn(model_files()),
                         [](const auto& test) { return test.param.substr(0, test.param.size() - 3); });

}  // namespace
}  // namespace rowan
