#include "optim/row_axes.h"

#include "core/error.h"

namespace rowan {

void RowAxes::visit(FieldVisitor& v) {
  v("counter", counter, "what bias corrections count: updates of the parameter (global) or of each row (row)",
    one_of({"global", "row"}));
  v("untouched", untouched,
    "rows that the batch did not read: as with a dense gradient of zero (dense), unchanged (frozen), or made up when next read "
    "(exact)",
    one_of({"dense", "frozen", "exact"}));
  v("catch_up", catch_up, "exact rows: repeat the missed steps, bitwise as dense (replay), or jump over them (closed)",
    one_of({"replay", "closed"}));
  v("duplicates", duplicates,
    "gradients of an id that was read several times: sum, mean, or one update after the other (sequential)",
    one_of({"sum", "mean", "sequential"}));
  v("decay", decay,
    "weight decay: none, coupled (L2, through the gradient), touched (decoupled, on rows that are updated; "
    "lamb, lars: as in their formula), deferred (missed too)",
    one_of({"none", "coupled", "touched", "deferred"}));
  v("clip", clip, "bound of a row's gradient: none, value (each element), row_norm, cowclip (times the row's norm and count)",
    one_of({"none", "value", "row_norm", "cowclip"}));
  v("clip_bound", clip_bound, "the bound of clip; for cowclip the share of the row's norm", above(0));
  v("clip_floor", clip_floor, "cowclip: smallest norm of a row that counts", at_least(0));
  v("sweep_above", sweep_above,
    "exact rows that replay: share of touched rows above which the whole table is swept, with the same result", between(0, 1));
}

void RowAxes::validate(const std::string& rule, double weight_decay) const {
  ROWAN_CHECK(decay != "none" || weight_decay == 0, "[", rule, "] weight_decay is ", weight_decay, " but decay = \"none\" ",
              "would never apply it: set decay to \"touched\" or \"coupled\", or weight_decay to 0");
  ROWAN_CHECK(counter != "row" || untouched == "frozen", "[", rule, "] counter = \"row\" with untouched = \"", untouched,
              "\": every step then updates every row, so a row's own count is the global one; use counter = \"global\" or "
              "untouched = \"frozen\"");
  ROWAN_CHECK(decay != "deferred" || untouched == "frozen", "[", rule, "] decay = \"deferred\" with untouched = \"", untouched,
              "\": no row misses a decay there; use decay = \"touched\", or untouched = \"frozen\"");
  ROWAN_CHECK(duplicates != "sequential" || untouched == "frozen", "[", rule, "] duplicates = \"sequential\" with untouched = \"",
              untouched,
              "\": a dense table has one gradient a row, so there is nothing to be equal to; use untouched = \"frozen\" or "
              "duplicates = \"sum\"");
  ROWAN_CHECK(catch_up != "closed" || untouched == "exact", "[", rule, "] catch_up = \"closed\" with untouched = \"", untouched,
              "\": only exact rows catch up; set untouched to \"exact\"");
  ROWAN_CHECK(catch_up != "closed" || decay != "coupled" || weight_decay == 0, "[", rule,
              "] catch_up = \"closed\" with coupled weight decay ", weight_decay,
              ": the decay is then a gradient in every missed step and has no closed form; use catch_up = \"replay\"");
}

}  // namespace rowan
