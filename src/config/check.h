// What no option can check by itself: options that contradict each other, or that have no meaning where others are as
// they are. Pure.
#pragma once

#include "base/result.h"
#include "config/config.h"

namespace tocsin {

/// An error names the option at fault, and what to do about it.
Status CheckTogether(const Config& config);

}  // namespace tocsin
