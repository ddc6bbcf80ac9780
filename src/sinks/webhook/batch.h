// A batch of jobs as the body of one request, and the outcomes that the receiver answers. Pure functions.
//
//   {"jobs":[{"id","topic","attempt","due_ms","token","key"?,"headers"?,"payload" or "payload_base64"}]}
//   {"outcomes":[{"id" or "token","outcome":"ok|retry|refuse","delay_ms"?,"reason"?}]}
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/job.h"
#include "spi/sink.h"

namespace tocsin::webhook {

constexpr size_t kBatchBytesMax = 1 << 20;               // about, of a request with more than one job; and of an answer
constexpr Millis kRetryDelayMax = std::chrono::days(1);  // the longest delay that a receiver may ask for

void AppendBatch(std::string& out, std::string_view topic, std::span<const JobView* const> jobs);
/// About how many bytes the job takes in it.
size_t BatchBytes(const JobView& job);

/// How long the list of outcomes of so many jobs may be, so that the jobs in flight bound the memory of all answers:
/// 2 KiB each, enough for an id of 256 bytes and a reason of 200 however they are escaped; kBatchBytesMax at most.
size_t OutcomesBytesMax(size_t jobs);
/// `body` came with 2xx. One outcome for each job, in their order: kRetry for those that are not in the list. Jobs with
/// the same id are answered in the order of the list, unless it names delivery tokens. An empty body confirms all.
std::vector<Delivered> ReadOutcomes(std::string_view body, std::span<const JobView* const> jobs);

}  // namespace tocsin::webhook
