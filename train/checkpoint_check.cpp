#include "train/checkpoint_check.h"

#include <algorithm>
#include <cmath>

#include "train/checkpoint_state.h"
#include "train/counters.h"
#include "train/session.h"

namespace rowan {
namespace {

template <class T>
bool all_finite(const std::vector<uint8_t>& bytes) {
  const auto* const values = reinterpret_cast<const T*>(bytes.data());
  return std::all_of(values, values + bytes.size() / sizeof(T), [](T x) { return std::isfinite(x); });
}

void check_finite(const Checkpoint& checkpoint) {
  for (const ArrayInfo& array : checkpoint.arrays()) {
    if (!array.path.starts_with("/model/") && !array.path.starts_with("/optim/")) continue;
    if (array.dtype != DType::kFloat32 && array.dtype != DType::kFloat64) continue;
    std::vector<uint8_t> bytes(static_cast<size_t>(array.bytes));
    checkpoint.read(array, bytes.data());
    if (!(array.dtype == DType::kFloat32 ? all_finite<float>(bytes) : all_finite<double>(bytes)))
      fail_data("[checkpoint] ", array.path, " in '", checkpoint.path(), "' has numbers that are not finite");
  }
}

void check_counter(const Checkpoint& checkpoint, const std::string& path) {
  const int64_t value = checkpoint.integer(path);
  if (value < 0 || value > kLargestCount)
    fail_data("[checkpoint] ", path, " in '", checkpoint.path(), "' is ", value, "; a number from 0 to ", kLargestCount,
              " was expected");
}

}  // namespace

void check_usable(Checkpoint& checkpoint) {
  check_counter(checkpoint, "/train/step");
  check_finite(checkpoint);
  const Config config = checkpoint_config(checkpoint);
  checkpoint_tokenizer(checkpoint);
  const int64_t step = checkpoint.integer("/train/step");
  Gpt model(model_at(config, step), 0, head_grads_at(config, step));  // as a session has it, to be trained
  load_parameters(checkpoint, model);
  checkpoint.finish({"/model"});
  if (!checkpoint.info().complete) return;
  for (const char* path : {"/train/tokens", "/loader/position"}) check_counter(checkpoint, path);
  checkpoint.integer("/rng/seed");
  checkpoint.integer("/train/best_step");
  if (std::isnan(checkpoint.number("/train/best_loss")))
    fail_data("[checkpoint] /train/best_loss in '", checkpoint.path(), "' is not a number");
  const std::unique_ptr<OptimizerSet> optimizers = make_optimizers(config, model);
  LoadVisitor state(checkpoint, "/optim");
  optimizers->visit_state(state);
  for (const char* path : {"/config", "/tokenizer/json", "/train/machine", "/train/denormals", "/train/step", "/train/tokens",
                           "/train/best_loss", "/train/best_step", "/rng/seed"})
    checkpoint.skip(path);
  for (const ArrayInfo& array : checkpoint.arrays())  // what these hold depends on the data and on what happened
    if (array.path.starts_with("/loader/") || array.path.starts_with("/train/guard/")) checkpoint.skip(array.path);
  checkpoint.finish();
}

}  // namespace rowan
