// rowwise_adagrad: Adagrad with one sum of squares for a row. Formula, state and source: optim/rowwise_adagrad.h.
#include "optim/rowwise_adagrad.h"

namespace rowan {
namespace {

class RowwiseAdagrad final : public RowwiseAdagradRule {};

ROWAN_REGISTER_OPTIMIZER("rowwise_adagrad", RowwiseAdagrad);

}  // namespace
}  // namespace rowan
