// A job as a line of an export file, and as a job to submit. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "cli/transport/api.h"

namespace tocsin::cli {

/// From a job as the server shows it: the fields that import submits again, and its state for people.
json::object TransferLine(std::string_view topic, const json::object& shown);

struct TransferJob {
  std::string topic;
  json::object job;  // to submit
};

/// From line `number` of a file. `topic` wins over the line's own, unless it is empty. A job without an id gets one
/// made of its line and number, so that submitting it again is a duplicate and never a second job. kInvalidArgument
/// if the line is not an object or names no topic. The server checks everything else.
Result<TransferJob> ParseTransferLine(std::string_view line, int64_t number, std::string_view topic);

}  // namespace tocsin::cli
