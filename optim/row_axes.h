// RowAxes: in what the libraries' row-sparse optimizers differ, as fields. Without them "sparse Adam" names at least seven
// different algorithms; with them a result can be compared.
#pragma once

#include <string>

#include "core/visit.h"

namespace rowan {

struct RowAxes {
  // global: a row counts the updates of its parameter; row: only those that touched it. Matters for bias corrections.
  std::string counter = "global";
  // What a step does to rows that a row-sparse gradient does not touch.
  //   dense:  they get a zero gradient, as with a dense table: momentum and decay move every row. Costs O(V*D) a step.
  //   frozen: nothing. Costs O(touched rows * D).
  std::string untouched = "dense";
  // Gradients of an id that was read more than once: their sum (the true gradient) or their mean.
  std::string duplicates = "sum";
  // none; coupled: the gradient gets weight_decay * w before the rule sees it (L2 penalty); touched: decoupled, w shrinks by
  // 1 - lr * weight_decay before the update, in the rows that the step updates (all of them with untouched = dense).
  std::string decay = "touched";

  void visit(FieldVisitor& v) {
    v("counter", counter, "what bias corrections count: updates of the parameter (global) or of each row (row)",
      one_of({"global", "row"}));
    v("untouched", untouched, "rows that the batch did not read: as with a dense gradient of zero (dense), or unchanged (frozen)",
      one_of({"dense", "frozen"}));
    v("duplicates", duplicates, "gradients of an id that was read several times", one_of({"sum", "mean"}));
    v("decay", decay, "weight decay: none, coupled (L2, through the gradient), touched (decoupled, on the rows that are updated)",
      one_of({"none", "coupled", "touched"}));
  }

  // Throws Error saying why a combination makes no sense.
  void validate(const std::string& rule, double weight_decay) const;
};

}  // namespace rowan
