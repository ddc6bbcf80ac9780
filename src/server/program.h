// The server program: from its arguments to its exit status. main.cc only calls it; tests call it too.
#pragma once

#include <cstdio>

#include "config/load.h"

namespace tocsin {

/// Serves until a signal, or prints what was asked for. Returns the exit status (exit_status.h).
int RunProgram(const Inputs& inputs, std::FILE* out, std::FILE* err);

}  // namespace tocsin
