// The limit of open files, which connections share with the journal: the journal must always be able to open one.
#pragma once

#include <cstddef>

namespace tocsin {

/// Raises the limit as far as the system allows, and returns how many of `wanted` connections fit below it.
size_t FitConnections(size_t wanted);

}  // namespace tocsin
