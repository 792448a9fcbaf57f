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
  //   exact:  as dense, but a row makes up its missed steps when it is next read (Optimizer::catch_up). One integer a row.
  std::string untouched = "dense";
  // How an exact row makes up its steps.
  //   replay: one by one, with the operations of a dense step: the same bits as dense.
  //   closed: in one jump, at a cost that is bounded however long the gap (optim/adam_jump.h states the error).
  std::string catch_up = "replay";
  // Gradients of an id that was read more than once: their sum (the true gradient), their mean, or one update after the other in
  // token order (all with the step's own count; weight decay acts once).
  std::string duplicates = "sum";
  // none; coupled: the gradient gets weight_decay * w before the rule sees it (L2 penalty); touched: decoupled, w shrinks by
  // 1 - lr * weight_decay before the update, in the rows that the step updates (all of them unless frozen); deferred: as touched,
  // and a frozen row makes up the decay of the steps it missed when it is next read. Rules whose formula has the decay inside
  // (lamb, lars) take touched for that.
  std::string decay = "touched";
  // What bounds the gradient of a row, after clipping by the global norm and after repeated ids are joined.
  //   value:    every element to [-clip_bound, clip_bound]
  //   row_norm: the row's 2-norm to clip_bound
  //   cowclip:  the row's 2-norm to clip_bound * count * max(|w|, clip_floor), with count the occurrences in the batch
  //             (Zheng et al., "CowClip", AAAI 2023)
  std::string clip = "none";
  double clip_bound = 1;
  double clip_floor = 1e-5;
  // An exact table whose rows replay is updated in one sweep over all of them when more than this share is touched: the same bits,
  // and past some share sequential memory is faster than scattered rows and their bookkeeping (docs/PERFORMANCE.md has the
  // measurement behind the default). Never where rows jump: a sweep would begin the next jump elsewhere, and change last bits.
  double sweep_above = 0.25;

  void visit(FieldVisitor& v);
  // Throws Error saying why a combination makes no sense.
  void validate(const std::string& rule, double weight_decay) const;

  bool decoupled() const { return decay == "touched" || decay == "deferred"; }
  bool tracks_rows() const { return untouched == "exact" || decay == "deferred"; }
};

}  // namespace rowan
