// Real: the number type of every tensor. float in the ordinary builds; double in the `gradcheck` build, where the whole
// suite runs again so that gradients can be compared with central differences.
#pragma once

namespace rowan {

#ifdef ROWAN_REAL_DOUBLE
using Real = double;
#else
using Real = float;
#endif

inline constexpr bool kRealIsDouble = sizeof(Real) == 8;

}  // namespace rowan
