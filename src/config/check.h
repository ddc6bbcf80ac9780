// Checks of several options together: those that contradict each other, or have no effect because of others. Pure.
#pragma once

#include "base/result.h"
#include "config/config.h"

namespace tocsin {

/// An error names the option at fault, and how to mend it.
Status CheckTogether(const Config& config);

}  // namespace tocsin
