#include "optim/row_axes.h"

#include "core/error.h"

namespace rowan {

void RowAxes::validate(const std::string& rule, double weight_decay) const {
  ROWAN_CHECK(decay != "none" || weight_decay == 0, "[", rule, "] weight_decay is ", weight_decay, " but decay = \"none\" ",
              "would never apply it: set decay to \"touched\" or \"coupled\", or weight_decay to 0");
  ROWAN_CHECK(counter != "row" || untouched != "dense", "[", rule, "] counter = \"row\" with untouched = \"dense\": ",
              "every step then updates every row, so a row's own count is the global one; use counter = \"global\" or untouched = "
              "\"frozen\"");
}

}  // namespace rowan
