// Looks at the settings of a Redis before a node trusts it with jobs.
#pragma once

#include <string>
#include <vector>

#include "clients/redis/client.h"
#include "spi/store.h"

namespace tocsin::redis {

/// What is wrong with the servers, for people; empty where nothing is: a version that is too old, a Cluster that is not
/// taken for one, no persistence, keys that may be evicted. A server that does not let itself be asked is told of too.
void CheckServers(Client& client, Mode mode, Done<std::vector<std::string>> done);

/// The same for one server, from what INFO and CONFIG GET answered. Of its own for tests.
std::vector<std::string> Findings(std::string_view server, Mode mode, std::string_view info,
                                  const std::vector<std::pair<std::string, std::string>>& settings);

}  // namespace tocsin::redis
