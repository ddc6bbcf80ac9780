// What the machine, or the container, gives us: the basis of the defaults that depend on it.
#pragma once

#include <cstdint>
#include <string>

namespace tocsin {

struct Machine {
  int cores = 1;
  uint64_t memory_bytes = uint64_t{1} << 30;
  std::string host = "localhost";  // its name
};

Machine ThisMachine();

}  // namespace tocsin
