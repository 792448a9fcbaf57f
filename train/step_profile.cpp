#include "train/step_profile.h"

#include <algorithm>
#include <string_view>

namespace rowan {
namespace {

double elements(const Shape& s) {
  return static_cast<double>(s.size());
}

// Forward; backward takes the number of products more.
double flops_of(const OpDone& d, int64_t negatives) {
  const std::string_view op = d.op;
  if (op == "linear") return (d.backward ? 4 : 2) * elements(d.shape) * static_cast<double>(d.inputs[1].shape()[1]);
  if (op == "attention")  // (B,T,H*hd): two products over the visible half, five in backward
    return (d.backward ? 5 : 2) * elements(d.shape) * static_cast<double>(d.shape[1]);
  if (op == "head_cross_entropy" && !d.backward)
    return 6 * elements(d.inputs[0].shape()) * static_cast<double>(d.inputs[1].shape()[0]);
  if (op == "sampled_softmax" && !d.backward)  // gradients are made in the forward pass here as well
    return 6 * elements(d.inputs[0].shape()) * static_cast<double>(negatives + 1);
  return 0;
}

double bytes_of(const OpDone& d) {
  const std::string_view op = d.op;
  double count = elements(d.shape);
  if (op == "gather") {
    count *= d.backward ? 1 : 2;  // of the table only the rows that are read
  } else if (op == "head_cross_entropy") {
    if (d.backward) return 0;
    count = 2 * (elements(d.inputs[0].shape()) + elements(d.inputs[1].shape()));
  } else {
    for (const Variable& x : d.inputs)
      if (!x.empty()) count += elements(x.shape()) * (d.backward && x.needs_grad() ? 2 : 1);
  }
  return count * static_cast<double>(sizeof(Real));
}

std::string label_of(const OpDone& d) {
  if (std::string_view(d.op) != "linear") return d.op;
  const Shape& w = d.inputs[1].shape();
  return join_text("linear (", w[0], ",", w[1], ")");
}

}  // namespace

OpTime& StepProfile::entry(const std::string& op, const std::string& pass) {
  const auto now = Clock::now();
  OpTime& e = entries_[op + "/" + pass];
  e.op = op;
  e.pass = pass;
  ++e.calls;
  e.seconds += std::chrono::duration<double>(now - last_).count();
  last_ = now;
  return e;
}

void StepProfile::op_done(const OpDone& done) {
  OpTime& e = entry(label_of(done), done.backward ? "backward" : "forward");
  e.flops += flops_of(done, negatives_);
  e.bytes += bytes_of(done);
}

void StepProfile::part_done(const std::string& name, double bytes) {
  entry(name, "").bytes += bytes;
}

std::vector<OpTime> StepProfile::by_time() const {
  std::vector<OpTime> all;
  for (const auto& [key, e] : entries_) all.push_back(e);
  std::stable_sort(all.begin(), all.end(), [](const OpTime& a, const OpTime& b) { return a.seconds > b.seconds; });
  return all;
}

}  // namespace rowan
