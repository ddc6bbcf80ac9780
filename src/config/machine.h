// The resources of the machine or the container, on which some defaults depend.
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
