#include "cli/resp_transport.h"

#include "cli/resp_calls.h"

namespace tocsin::cli {

Result<boost::json::object> RespTransport::Call(std::string_view method, std::string_view target,
                                                const boost::json::object* body, Millis limit) {
  static const boost::json::object nothing;
  const auto plan = PlanCall(method, target, body == nullptr ? nothing : *body);
  if (!plan) return std::unexpected(plan.error());
  auto replies = resp_.Call(plan->request, plan->reads, limit);
  if (!replies) return std::unexpected(std::move(replies).error());
  return AnswerOf(*plan, *std::move(replies));
}

}  // namespace tocsin::cli
