// Checks the settings of a Redis before a node trusts it with jobs.
#pragma once

#include <string>
#include <vector>

#include "clients/redis/client.h"
#include "spi/store.h"

namespace tocsin::redis {

/// What is wrong with the servers, for people; empty if nothing is. Finds a version that is too old, a Cluster that is
/// configured as a single server, missing persistence, keys that may be evicted, and servers that refuse the questions.
void CheckServers(Client& client, Mode mode, Done<std::vector<std::string>> done);

/// The same for one server, from the answers to INFO and CONFIG GET. Declared for tests.
std::vector<std::string> Findings(std::string_view server, Mode mode, std::string_view info,
                                  const std::vector<std::pair<std::string, std::string>>& settings);

}  // namespace tocsin::redis
