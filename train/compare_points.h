// The points of a sweep's grid and their labels. Internal to train/compare_sweep.cpp.
#pragma once

#include <vector>

#include "train/compare_sweep.h"

namespace rowan {

// Every combination of the axes' values, the last axis fastest; one point without settings when there are no axes.
std::vector<SweepPoint> all_points(const std::vector<SweepAxis>& axes);

}  // namespace rowan
