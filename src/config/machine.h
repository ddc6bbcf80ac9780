// What the machine, or the container, gives us: the basis of the defaults that depend on it.
#pragma once

#include <cstdint>

namespace tocsin {

struct Machine {
  int cores = 1;
  uint64_t memory_bytes = uint64_t{1} << 30;
};

Machine ThisMachine();

}  // namespace tocsin
