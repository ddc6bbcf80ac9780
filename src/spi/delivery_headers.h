// The names under which every sink tells a receiver what the server says of a job. Submit refuses headers of jobs whose
// names begin with kPrefix, so that no job passes for another one, or for a probe.
#pragma once

#include <string_view>

namespace tocsin::delivery_header {

inline constexpr std::string_view kPrefix = "tocsin-";
inline constexpr std::string_view kTopic = "tocsin-topic";
inline constexpr std::string_view kJobId = "tocsin-job-id";
inline constexpr std::string_view kAttempt = "tocsin-attempt";
inline constexpr std::string_view kDueMs = "tocsin-due-ms";
inline constexpr std::string_view kToken = "tocsin-token";
inline constexpr std::string_view kKey = "tocsin-key";
inline constexpr std::string_view kProbe = "tocsin-probe";  // a header of the job that is the probe

}  // namespace tocsin::delivery_header
