// OptimizerSet: which rule updates which parameter. Groups are globs over parameter names; the first that matches wins, and a
// fallback takes the rest.
//
//   OptimizerSet set({{"embed.tokens.*", make_optimizer("sparse_adam")}}, make_optimizer("adamw"), parameters);
//   ...
//   const GradNorm norm = set.clip_and_step(1.0, {.step = step, .lr_factor = schedule.factor(step, steps)});
//
// Two parameters may have one storage, and are then updated one after the other: a table that is tied to the LM head and updated
// from two sources (layers/gpt_config.h, HeadGrads::kTwoSource). With g the lookup's gradient, by rows, h the softmax's, U the
// rule's update and s its state of each of the two:
//   w <- w - U(g; s of embed.tokens.weight)      w <- (1 - lr * weight_decay) w - U(h; s of head.weight)
// Weight decay is head.weight's alone (Parameter::decays). The norm that clipping goes by is that of all gradients side by side, so
// |g|^2 + |h|^2 and not |g + h|^2.
//
// In a glob, * stands for any run of characters, dots too; ? for one; [ab] for one of several.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "optim/clip.h"
#include "optim/optimizer.h"

namespace rowan {

bool glob_matches(const std::string& glob, const std::string& name);

// The index of the glob that takes each name, the first that matches; globs.size() for none.
std::vector<size_t> assign_groups(const std::vector<std::string>& globs, const std::vector<std::string>& names);

// The first glob that takes no name by assign_groups(), and why: "matches no parameter; there are: ...".
struct UnusedGroup {
  size_t group = 0;
  std::string what, hint = {};
};
std::optional<UnusedGroup> find_unused_group(const std::vector<std::string>& globs, const std::vector<std::string>& names,
                                             const std::vector<size_t>& group_of);

struct ParameterGroup {
  std::string params;  // glob
  std::shared_ptr<Optimizer> optimizer;
};

// What the table at start shows of one group.
struct GroupReport {
  std::string params, rule, settings;
  int64_t tensors = 0, elements = 0, state_bytes = 0;
  int64_t dense = 0, row_sparse = 0;         // tensors of each kind
  std::vector<std::string> parameters = {};  // names
};

class OptimizerSet {
 public:
  // Validates every optimizer and prepares state for every parameter. Throws Error for a glob that takes no parameter (with
  // near names), for settings that make no sense, and for a parameter that its rule refuses. `parameters` must outlive the set.
  // `later`: names of parameters that do not exist yet; a glob that takes one of them may wait for it.
  OptimizerSet(std::vector<ParameterGroup> groups, std::shared_ptr<Optimizer> fallback, std::vector<NamedParameter> parameters,
               const std::vector<std::string>& later = {});

  // The whole of an update. The gradients' norm is taken first; when it is not finite nothing at all is changed, gradients
  // included, and the result says so. Otherwise clips (clip_norm 0: no clipping), steps every parameter and clears its gradient.
  GradNorm clip_and_step(double clip_norm, StepInfo info);
  // The second half alone, for gradients that are known to be finite.
  void step(const StepInfo& info);

  UpdateReport last_update(const std::string& parameter) const;  // Error for an unknown name

  // Before the rows of a parameter are read, and before all of them are: optimizer.h. Free where no row can lag behind.
  void catch_up(const std::string& parameter, std::span<const int32_t> ids);
  void flush();

  // Everything that a checkpoint needs: "<parameter>/<slot>", "<parameter>/step", and "group-<i>/settings". Loading takes over the
  // saved settings as well: training then continues as if it had not been interrupted, whatever the set was built with.
  void visit_state(StateVisitor& v);

  std::vector<GroupReport> report() const;  // in the order of groups, the fallback last; groups without parameters left out
  std::string report_text() const;          // the same as a table, one line a group

  const std::vector<NamedParameter>& parameters() const { return parameters_; }
  Optimizer& optimizer_of(const std::string& parameter);  // Error for an unknown name

 private:
  size_t index_of(const std::string& parameter) const;

  std::vector<ParameterGroup> groups_;  // the fallback is the last
  std::vector<NamedParameter> parameters_;
  std::vector<size_t> group_of_;  // by parameter
};

}  // namespace rowan
