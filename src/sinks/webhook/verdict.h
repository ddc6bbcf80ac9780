// What an answer of a receiver means for the job. Pure functions.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "sinks/webhook/answer.h"
#include "spi/sink.h"

namespace tocsin::webhook {

/// 2xx confirms. 4xx but 408, 425 and 429 is refused for good, unless `retry_4xx`. Everything else is tried again, 3xx
/// too, since redirects are not followed; when its Retry-After says, where it has one, a day at most.
Delivered VerdictOf(const Answer& answer, bool retry_4xx, std::chrono::sys_seconds now);

/// Of the header Retry-After: seconds, or a date as HTTP writes it now ("Sun, 06 Nov 1994 08:49:37 GMT"). Nothing where
/// it is neither; none below zero.
std::optional<std::chrono::seconds> ParseRetryAfter(std::string_view text, std::chrono::sys_seconds now);

}  // namespace tocsin::webhook
