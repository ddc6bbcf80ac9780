// Open files: connections share the process's limit with the journal, which must always find one.
#pragma once

#include <cstddef>

namespace tocsin {

/// Raises the limit of open files as far as the system allows, and returns how many of `wanted` connections fit below
/// it.
size_t FitConnections(size_t wanted);

}  // namespace tocsin
