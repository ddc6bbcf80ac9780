// Request: one command, from Call to its answer. Exactly one place owns it at a time: the connection that sent it, the
// link where it waits for a connection, or the list of retries.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "clients/redis/alarm.h"
#include "clients/redis/client.h"

namespace tocsin::redis {

struct Request {
  Command command;
  Client::Answer answer;
  TimePoint deadline;
  std::optional<Endpoint> pinned;  // CallEach: only this server
  std::string trouble;             // what a server said that made us try again
  int tries = 0;                   // with a back-off
  int redirects = 0;               // since the last back-off
  bool whole_script = false;       // the server said that it does not know the script
  bool asking = false;             // the server takes it only after ASKING
};

using RequestPtr = std::unique_ptr<Request>;
using Requests = std::vector<RequestPtr>;

}  // namespace tocsin::redis
