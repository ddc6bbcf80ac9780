// The headers by which every sink tells a receiver what the server knows of a job. Submit refuses headers of jobs whose
// names begin with kPrefix, so no job can pass for another one, or for a probe.
#pragma once

#include <algorithm>
#include <cctype>
#include <string_view>

#include <fmt/format.h>

#include "model/job.h"

namespace tocsin::delivery_header {

inline constexpr std::string_view kPrefix = "tocsin-";
inline constexpr std::string_view kTopic = "tocsin-topic";
inline constexpr std::string_view kJobId = "tocsin-job-id";
inline constexpr std::string_view kAttempt = "tocsin-attempt";
inline constexpr std::string_view kDueMs = "tocsin-due-ms";
inline constexpr std::string_view kToken = "tocsin-token";  // the delivery token
inline constexpr std::string_view kKey = "tocsin-key";
inline constexpr std::string_view kProbe = "tocsin-probe";  // one of the job's own headers: the job is the probe

/// Calls add(name, value) for each header of a delivery, except the job's own. A value is valid during the call.
template <class Add>
void ForEach(std::string_view topic, const JobView& job, Add add) {
  const auto number = [&](std::string_view name, auto value) {
    const fmt::format_int text(value);
    add(name, std::string_view(text.data(), text.size()));
  };
  add(kTopic, topic);
  add(kJobId, std::string_view(job.Id()));
  number(kAttempt, job.attempt);
  if (job.due != kNever) number(kDueMs, ToMs(job.due));
  add(kToken, std::string_view(TokenText(job.token)));
  if (!job.key.empty()) add(kKey, job.key);
}

/// Whether this header of a job is its content type, for which most receivers have a field of their own.
inline bool IsContentType(std::string_view name) {
  return std::ranges::equal(name, std::string_view("content-type"),
                            [](unsigned char a, char b) { return std::tolower(a) == b; });
}

}  // namespace tocsin::delivery_header
