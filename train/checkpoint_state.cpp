#include "train/checkpoint_state.h"

namespace rowan {

void save_parameters(CheckpointWriter& writer, Module& model) {
  for_each_parameter(model, [&](const std::string& name, Parameter& p) { writer.add("/model/" + name, p.value()); });
}

void load_parameters(Checkpoint& checkpoint, Module& model) {
  for_each_parameter(model, [&](const std::string& name, Parameter& p) { checkpoint.take_shaped("/model/" + name, p.value()); });
}

}  // namespace rowan
