// Ports for servers of tests: below the range that the kernel gives to outgoing connections, so that a server finds its
// port free when it starts again.
#pragma once

#include <cstdint>

namespace tocsin::real {

/// A TCP port of loopback that nobody listens on. Another program may take it before its user does: a start that fails
/// for that reason is tried with another one.
uint16_t FreePort();

}  // namespace tocsin::real
