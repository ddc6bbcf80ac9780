// The outcome of a job by the answer of its receiver. Pure functions.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "sinks/webhook/answer.h"
#include "spi/sink.h"

namespace tocsin::webhook {

/// 2xx confirms. 4xx is refused for good, except 408, 425 and 429, unless `retry_4xx`. Everything else is tried again,
/// also 3xx, because redirects are not followed; after its Retry-After if it has one, kRetryDelayMax at most.
Delivered VerdictOf(const Answer& answer, bool retry_4xx, std::chrono::sys_seconds now);

/// The header Retry-After: seconds, or a date of HTTP ("Sun, 06 Nov 1994 08:49:37 GMT"). Nothing if it is neither;
/// never below zero.
std::optional<std::chrono::seconds> ParseRetryAfter(std::string_view text, std::chrono::sys_seconds now);

}  // namespace tocsin::webhook
