// Checkpoints: what is written is what is read; equal states are equal bytes; strict loading lists everything at once.
#include "train/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "tests/support/temp_dir.h"
#include "tests/train/small_checkpoint.h"
#include "train/checkpoint_state.h"

namespace rowan {
namespace {

using test::SmallState;
using test::TempDir;
using testing::HasSubstr;
using testing::Not;

std::string message_of(const std::function<void()>& work, std::string* hint = nullptr) {
  try {
    work();
  } catch (const Error& e) {
    if (hint != nullptr) *hint = e.hint();
    return e.what();
  }
  return "no error";
}

std::string write_image(const TempDir& dir, const CheckpointImage& image) {
  const std::string path = dir.file("c.h5");
  publish_checkpoint(image, path, IfExists::kReplace);
  return path;
}

bool same(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && std::memcmp(a.data(), b.data(), a.values().size_bytes()) == 0;
}

TEST(Checkpoint, everything_comes_back_as_it_was) {
  const TempDir dir;
  const SmallState s;
  const CheckpointImage image = s.image();
  const std::string path = dir.file("a b ü.h5");
  publish_checkpoint(image, path, IfExists::kRefuse);

  Checkpoint c = Checkpoint::open(path);
  EXPECT_EQ(c.info().created, "2025-01-31T00:00:00Z");
  EXPECT_EQ(c.info().rowan_version, "1.2.3");
  EXPECT_TRUE(c.info().complete);
  EXPECT_EQ(c.state_digest(), image.state_digest());
  SmallState t{.weight = Tensor::zeros({2, 3}),
               .empty = {},
               .step = 0,
               .best = 0,
               .seen = {},
               .steps = {},
               .history = {1},
               .blob = {},
               .config = {}};
  std::string note = "x";
  Tensor any;
  c.take_text("/config", t.config);
  c.take_text("/train/note", note);
  c.take_shaped("/model/blocks.0.attn.qkv.weight", t.weight);
  c.take("/optim/blocks.0.attn.qkv.weight/m", any);
  c.take("/model/empty", t.empty);
  c.take("/train/step", t.step);
  c.take("/train/best_loss", t.best);
  c.take("/rng/seen", t.seen);
  c.take("/loader/steps", t.steps);
  c.take("/train/history", t.history);
  c.take("/tokenizer/data", t.blob);
  EXPECT_NO_THROW(c.finish());
  EXPECT_TRUE(same(t.weight, s.weight));
  EXPECT_TRUE(same(any, s.weight));
  EXPECT_EQ(t.empty.shape(), (Shape{0, 4}));
  EXPECT_EQ(note, "");
  EXPECT_EQ(std::tie(t.step, t.best, t.seen, t.steps, t.history, t.blob, t.config),
            std::tie(s.step, s.best, s.seen, s.steps, s.history, s.blob, s.config));
}

TEST(Checkpoint, single_values_are_read_by_name) {
  const TempDir dir;
  const Checkpoint c = Checkpoint::open(write_image(dir, SmallState().image()));
  EXPECT_EQ(c.integer("/train/step"), 7);
  EXPECT_EQ(c.number("/train/best_loss"), 1.5);
  EXPECT_EQ(c.text("/config"), SmallState().config);
  EXPECT_EQ(c.blob("/tokenizer/data"), SmallState().blob);
  EXPECT_THAT(message_of([&] { c.integer("/train/none"); }), HasSubstr("has no /train/none"));
  EXPECT_THAT(message_of([&] { c.integer("/loader/steps"); }), HasSubstr("(2) of int64; one int64 was expected"));
  EXPECT_THAT(message_of([&] { c.text("/train/step"); }), HasSubstr("scalar of int64; an array of text was expected"));
}

TEST(Checkpoint, special_values_keep_their_bits) {
  const TempDir dir;
  SmallState s;
  s.weight =
      Tensor::from({1, 4}, std::vector<Real>{static_cast<Real>(std::nan("5")), -Real(0), std::numeric_limits<Real>::infinity(),
                                             std::numeric_limits<Real>::denorm_min()});
  Checkpoint c = Checkpoint::open(write_image(dir, s.image()));
  Tensor t = Tensor::zeros({1, 4});
  c.take_shaped("/model/blocks.0.attn.qkv.weight", t);
  EXPECT_TRUE(same(t, s.weight));
}

TEST(Checkpoint, equal_states_are_equal_bytes_in_whatever_order_they_were_added) {
  const SmallState s;
  const CheckpointImage a = s.image();
  CheckpointWriter w;
  w.add_text("/train/note", "");
  w.add("/tokenizer/data", s.blob);
  w.add("/train/history", s.history);
  w.add("/loader/steps", s.steps);
  w.add("/rng/seen", s.seen);
  w.add("/train/best_loss", s.best);
  w.add("/train/step", s.step);
  w.add("/optim/blocks.0.attn.qkv.weight/m", s.weight.clone());
  w.add("/model/empty", s.empty);
  w.add("/model/blocks.0.attn.qkv.weight", s.weight);
  w.add_text("/config", s.config);
  const CheckpointImage b = w.build({.created = "2025-01-31T00:00:00Z", .rowan_version = "1.2.3", .complete = true});
  ASSERT_EQ(a.bytes().size(), b.bytes().size());
  EXPECT_EQ(std::memcmp(a.bytes().data(), b.bytes().data(), a.bytes().size()), 0);
}

TEST(Checkpoint, state_digest_is_of_the_training_state_alone) {
  const std::string digest = SmallState().image().state_digest();
  SmallState other;
  other.best = 9;
  other.blob = {1};
  other.config = "# another file";
  EXPECT_EQ(other.image("2030-01-01T00:00:00Z").state_digest(), digest);
  const std::function<void(SmallState&)> changes[] = {[](SmallState& s) { s.weight.data()[5] = Real(-6.5); },
                                                      [](SmallState& s) {
                                                        s.weight = s.weight.reshape({3, 2});
                                                      },
                                                      [](SmallState& s) { s.step = 8; },
                                                      [](SmallState& s) { s.seen[1] = 1; },
                                                      [](SmallState& s) { s.steps.push_back(0); },
                                                      [](SmallState& s) {
                                                        s.empty = Tensor::zeros({4, 0});
                                                      }};
  for (const auto& change : changes) {
    SmallState changed;
    change(changed);
    EXPECT_NE(changed.image().state_digest(), digest);
  }
}

TEST(Checkpoint, one_error_lists_all_that_is_missing_extra_or_misshapen) {
  const TempDir dir;
  const std::string path = write_image(dir, SmallState().image());
  Checkpoint c = Checkpoint::open(path);
  Tensor wrong = Tensor::full({3, 3}, 4), absent = Tensor::zeros({2}), one = Tensor::zeros({0, 4});
  int64_t number = 5;
  std::vector<int32_t> ids = {9};
  c.take_shaped("/model/blocks.0.attn.qkv.weight", wrong);
  c.take_shaped("/model/head.weight", absent);
  c.take_shaped("/model/empty", one);
  c.take("/train/best_loss", number);
  c.take("/train/nothing", number);
  c.take("/loader/steps", ids);
  const std::string message = message_of([&] { c.finish({"/model", "/optim", "/train"}); });
  EXPECT_THAT(message, HasSubstr(path));
  EXPECT_THAT(message, HasSubstr("9 problems"));
  const std::string kReal = dtype_name(kRealDType);
  EXPECT_THAT(message, HasSubstr("missing: /model/head.weight (2) of " + kReal));
  EXPECT_THAT(message, HasSubstr("missing: /train/nothing scalar of int64"));
  EXPECT_THAT(message, HasSubstr("misfit: /model/blocks.0.attn.qkv.weight is (2,3) of " + kReal + ", expected (3,3) of " + kReal));
  EXPECT_THAT(message, HasSubstr("misfit: /train/best_loss is scalar of float64, expected scalar of int64"));
  EXPECT_THAT(message, HasSubstr("misfit: /loader/steps is (2) of int64, expected int32"));
  EXPECT_THAT(message, HasSubstr("extra: /optim/blocks.0.attn.qkv.weight/m (2,3)"));
  EXPECT_THAT(message, HasSubstr("extra: /train/history (0) of float64"));
  EXPECT_THAT(message, Not(HasSubstr("/rng")));
  EXPECT_EQ(number, 5);
  EXPECT_EQ(ids, std::vector<int32_t>{9});
  EXPECT_EQ(wrong.data()[8], 4);
}

TEST(Checkpoint, weights_of_the_other_build_are_refused_by_name) {
  const TempDir dir;
  CheckpointWriter w;
  w.add_text("/config", "");
  w.add("/train/step", int64_t{0});
  const double doubles[2] = {1, 2};
  const float floats[2] = {1, 2};
  w.add({.path = "/model/w",
         .dtype = kRealIsDouble ? DType::kFloat32 : DType::kFloat64,
         .dims = {2},
         .data = kRealIsDouble ? static_cast<const void*>(floats) : doubles});
  Checkpoint c = Checkpoint::open(write_image(dir, w.build({})));
  Tensor t = Tensor::zeros({2});
  std::string hint;
  c.take_shaped("/model/w", t);
  EXPECT_THAT(message_of([&] { c.finish({"/model"}); }, &hint), HasSubstr("misfit: /model/w"));
  EXPECT_THAT(hint, HasSubstr("gradcheck build"));
  EXPECT_THAT(hint, HasSubstr("ordinary build"));
}

TEST(Checkpoint, stays_readable_when_its_file_is_removed) {
  const TempDir dir;
  const std::string path = write_image(dir, SmallState().image());
  const Checkpoint c = Checkpoint::open(path);
  remove_file(path);
  EXPECT_EQ(c.text("/config"), SmallState().config);
}

TEST(CheckpointWriter, refuses_what_a_checkpoint_cannot_hold) {
  CheckpointWriter w;
  for (const char* path : {"", "/", "model/w", "/model", "/model/", "/other/x", "/model//w", "/model/../x", "/model/.",
                           "/model/a b", "/model/\n", "/model/ü", "/digest/x", "/config/x", "/model/a/b/c/d"}) {
    EXPECT_THAT(message_of([&] { w.add(path, int64_t{1}); }), HasSubstr("can't be a path")) << path;
  }
  w.add("/train/step", int64_t{-1});
  EXPECT_THAT(message_of([&] { w.add("/train/step", int64_t{1}); }), HasSubstr("added twice"));
  EXPECT_THAT(message_of([&] { w.add("/model/w", Tensor()); }), HasSubstr("does not exist"));
  EXPECT_THAT(message_of([&] { w.add_text("/config", std::string("a\0b", 3)); }), HasSubstr("NUL"));
  w.add_text("/config", "");
  EXPECT_THAT(message_of([&] { w.build({}); }), HasSubstr("can't be negative"));
  CheckpointWriter without_step, without_config;
  without_step.add_text("/config", "");
  without_config.add("/train/step", int64_t{1});
  EXPECT_THAT(message_of([&] { without_step.build({}); }), HasSubstr("/train/step"));
  EXPECT_THAT(message_of([&] { without_config.build({}); }), HasSubstr("/config"));
  CheckpointWriter both;
  SmallState().write(both);
  both.add("/optim/blocks.0.attn.qkv.weight", int64_t{1});
  EXPECT_THAT(message_of([&] { both.build({}); }), HasSubstr("is an array and a group"));
}

struct TwoParameters final : Module {
  Parameter a{Tensor::from({2}, std::vector<Real>{1, 2})}, b{Tensor::from({1, 1}, std::vector<Real>{3})}, absent;
  void visit(ParamVisitor& v) override {
    v("layer.weight", a);
    v("layer.bias", absent);
    v("head.weight", b);
  }
};

struct Counters {
  Tensor m = Tensor::full({3}, 2);
  int64_t step = 3;
  double mean = 0.5;
  std::vector<int32_t> ids = {1};
  std::vector<int64_t> steps = {2};
  std::vector<double> values = {3};
  std::vector<uint8_t> bytes = {4};
  void visit_state(StateVisitor& v) {
    v("p/m", m);
    v("p/step", step);
    v("mean", mean);
    v("ids", ids);
    v("steps", steps);
    v("values", values);
    v("bytes", bytes);
  }
};

TEST(CheckpointState, parameters_and_visited_state_round_trip) {
  const TempDir dir;
  TwoParameters model, other;
  Counters state, copy{Tensor(), 0, 0, {}, {}, {}, {}};
  for (Parameter* p : {&other.a, &other.b}) p->value().fill(0);
  CheckpointWriter w;
  w.add_text("/config", "");
  w.add("/train/step", int64_t{0});
  save_parameters(w, model);
  SaveVisitor save(w, "/optim");
  EXPECT_FALSE(save.loading());
  state.visit_state(save);
  Checkpoint c = Checkpoint::open(write_image(dir, w.build({})));
  EXPECT_TRUE(c.contains("/optim/p/m"));
  LoadVisitor load(c, "/optim");
  EXPECT_TRUE(load.loading());
  load_parameters(c, other);
  copy.visit_state(load);
  c.finish({"/model", "/optim"});
  EXPECT_TRUE(same(model.a.value(), other.a.value()));
  EXPECT_TRUE(same(model.b.value(), other.b.value()));
  EXPECT_TRUE(same(state.m, copy.m));
  EXPECT_EQ(std::tie(state.step, state.mean, state.ids, state.steps, state.values, state.bytes),
            std::tie(copy.step, copy.mean, copy.ids, copy.steps, copy.values, copy.bytes));
}

}  // namespace
}  // namespace rowan
