// Ports for servers of tests: below the range that the kernel gives to outgoing connections, so that a server finds its
// port free when it starts again.
#pragma once

#include <cstdint>
#include <functional>

#include "base/result.h"

namespace tocsin::real {

/// A TCP port of loopback that nobody listens on. Another program may take it before its user does.
uint16_t FreePort();

/// Runs `start`, which chooses its ports, and runs it again if another program took one of them meanwhile.
Status StartOnFreePorts(const std::function<Status()>& start);

}  // namespace tocsin::real
