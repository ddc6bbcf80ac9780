// Who may submit copies of jobs, with a past that was not seen here (model/job.h: Restored): only an administrator of
// the topic. For all doors.
#pragma once

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "auth/access.h"
#include "model/job.h"

namespace tocsin::shared {

/// kForbidden if some of the jobs are copies and the grant does not allow that. `grant` is null if everybody may do
/// everything.
inline Status CheckRestores(const auth::Grant* grant, std::string_view topic, std::span<const NewJob> jobs) {
  if (grant == nullptr || std::ranges::none_of(jobs, [](const NewJob& job) { return job.restored != nullptr; })) {
    return {};
  }
  Status allowed = CheckGrant(*grant, auth::Access::kTopicAdmin, topic);
  if (allowed) return {};
  return std::unexpected(std::move(allowed).error().Prefixed(
      "state, attempt, reason, created_ms, last_attempt_ms and died_ms tell the past of a job"));
}

}  // namespace tocsin::shared
