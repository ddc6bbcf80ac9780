// The calls of the API as RESP commands: one table names the command of each call, what its fields become, and how its
// replies are shown as the JSON that HTTP would answer. Pure values; no state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>

#include "base/result.h"
#include "cli/resp_client.h"

namespace tocsin::cli {

struct RespRow;

/// A call, ready to be sent.
struct RespPlan {
  const RespRow* row = nullptr;
  std::vector<std::string> names;   // of the path: the topic, and the job
  const boost::json::object* body;  // the call's
  RespRequest request;
  bool reads = false;  // it changes nothing
};

/// `target` is path and query. What the server would refuse over HTTP alone, such as an unknown field or a number with
/// a fraction, is refused here with the same code. Keeps pointing to `body`.
Result<RespPlan> PlanCall(std::string_view method, std::string_view target, const boost::json::object& body);

/// `replies` has one for each command of the request. In a batch of jobs the error of a job that breaks a rule stands
/// in its place as `outcome`: the others may be stored.
Result<boost::json::object> AnswerOf(const RespPlan& plan, std::vector<RespValue> replies);

}  // namespace tocsin::cli
