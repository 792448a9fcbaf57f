#include "optim/optimizer.h"

#include "core/nearest.h"

namespace rowan {

void Optimizer::visit(FieldVisitor& v) {
  v("lr", lr_, "learning rate; the schedule multiplies it", at_least(0));
  v("weight_decay", weight_decay_, "weight decay; acts on tensors of two dimensions only unless decay_vectors", at_least(0));
  v("decay_vectors", decay_vectors_, "weight decay acts on biases and norms as well");
}

void Optimizer::validate() const {}
std::unique_ptr<PiecewiseStep> Optimizer::step_in_pieces(const std::string&, Parameter&, const StepInfo&) {
  return nullptr;
}
UpdateReport Optimizer::last_update(const std::string&) const {
  return {};
}
void Optimizer::catch_up(const std::string&, Parameter&, std::span<const int32_t>) {}
void Optimizer::flush(const std::string&, Parameter&) {}

std::unique_ptr<Optimizer> make_optimizer(const std::string& rule) {
  const Registry<Optimizer>& registry = Registry<Optimizer>::instance();
  if (!registry.contains(rule)) {
    std::string known;
    for (const std::string& name : registry.names()) known += (known.empty() ? "" : ", ") + name;
    const std::string near = nearest_name(rule, registry.names());
    throw Error(join_text("[optim] no rule is called '", rule, "'; known: ", known), ErrorKind::kUsage,
                near.empty() ? "" : "did you mean '" + near + "'?");
  }
  std::unique_ptr<Optimizer> optimizer = registry.make(rule);
  optimizer->set_rule(rule);
  return optimizer;
}

std::vector<std::string> optimizer_rules() {
  return Registry<Optimizer>::instance().names();
}

}  // namespace rowan
