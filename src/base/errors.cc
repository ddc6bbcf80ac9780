#include "base/errors.h"

#include <array>
#include <cstddef>

namespace tocsin {
namespace {

constexpr std::array kRows{
    ErrorRow{Code::kInvalidArgument, "invalid_argument", 400, "INVALID", "INVALID_ARGUMENT", false,
             "A value is missing, malformed or out of its range; `field` names it and the message gives the limit."},
    ErrorRow{Code::kUnknownField, "unknown_field", 400, "INVALID", "INVALID_ARGUMENT", false,
             "The request has a field that this call does not know; the message names the nearest known one."},
    ErrorRow{Code::kUnauthenticated, "unauthenticated", 401, "NOAUTH", "UNAUTHENTICATED", false,
             "The call needs a token, and has none or one that is not known; see `tocsin token create`."},
    ErrorRow{
        Code::kForbidden, "forbidden", 403, "NOPERM", "PERMISSION_DENIED", false,
        "The token is known, but lacks a scope or the topic; the message says what would be needed. Or a web page of "
        "another site caused the call."},
    ErrorRow{Code::kTooLarge, "too_large", 413, "TOOLARGE", "INVALID_ARGUMENT", false,
             "A payload, a header or the whole request is over its size limit."},
    ErrorRow{Code::kTopicNotFound, "topic_not_found", 404, "NOTOPIC", "NOT_FOUND", false,
             "There is no such topic. Topics are created by a call or by the first job submitted to them."},
    ErrorRow{Code::kNotFound, "not_found", 404, "NOTFOUND", "NOT_FOUND", false, "There is nothing at this path."},
    ErrorRow{Code::kMethodNotAllowed, "method_not_allowed", 405, "INVALID", "UNIMPLEMENTED", false,
             "The path exists, but not with this method."},
    ErrorRow{Code::kUnknownCommand, "unknown_command", 405, "ERR", "UNIMPLEMENTED", false,
             "RESP: there is no such command here; the message says what to use instead."},
    ErrorRow{Code::kTimedOut, "timed_out", 408, "TIMEDOUT", "DEADLINE_EXCEEDED", true,
             "The request did not arrive in time."},
    ErrorRow{Code::kConflict, "conflict", 409, "CONFLICT", "ALREADY_EXISTS", false,
             "The call contradicts what is stored: for example another number of slots for an existing topic."},
    ErrorRow{Code::kOverCapacity, "over_capacity", 429, "OVERCAPACITY", "RESOURCE_EXHAUSTED", true,
             "The topic, or the whole node, holds as many jobs or bytes as it may."},
    ErrorRow{Code::kOverloaded, "overloaded", 503, "OVERLOADED", "UNAVAILABLE", true,
             "A bounded queue inside the server is full; nothing was done. Try again with a back-off."},
    ErrorRow{Code::kUnavailable, "unavailable", 503, "UNAVAILABLE", "UNAVAILABLE", true,
             "The store behind the server (Redis) could not be reached in time. Whether the call was carried out is "
             "unknown, unless the message says that it was not sent: submit again with the same id."},
    ErrorRow{Code::kStorageFull, "storage_full", 507, "STORAGEFULL", "RESOURCE_EXHAUSTED", true,
             "The disk is full: no new jobs are accepted. Delivery, ack and cancel go on and free space."},
    ErrorRow{Code::kStorageFailed, "storage_failed", 500, "STORAGEFAILED", "INTERNAL", false,
             "A write or a sync failed. Nothing is acknowledged any more; the server exits and recovers on restart."},
    ErrorRow{Code::kCorrupt, "corrupt", 500, "CORRUPT", "DATA_LOSS", false,
             "Stored data is damaged. The message names the file and the offset; see `tocsin journal verify`."},
    ErrorRow{Code::kUnsupportedFormat, "unsupported_format", 500, "UNSUPPORTED", "FAILED_PRECONDITION", false,
             "Stored data was written in a format version that this program does not read."},
    ErrorRow{Code::kInUse, "in_use", 409, "INUSE", "FAILED_PRECONDITION", true,
             "Another server holds the data folder or the address."},
    ErrorRow{Code::kShuttingDown, "shutting_down", 503, "SHUTTINGDOWN", "UNAVAILABLE", true,
             "The server is stopping; nothing was done."},
    ErrorRow{Code::kIo, "io", 500, "IO", "UNAVAILABLE", true,
             "The operating system refused a file or network operation; the message has its reason."},
    ErrorRow{Code::kInternal, "internal", 500, "INTERNAL", "INTERNAL", false,
             "A bug in Tocsin. Please report the message."},
};

constexpr bool RowsAreInOrder() {
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (static_cast<size_t>(kRows[i].code) != i) return false;
  }
  return kRows.size() == static_cast<size_t>(Code::kInternal) + 1;
}
static_assert(RowsAreInOrder(), "one row for each code, in the order of the enum");

}  // namespace

std::span<const ErrorRow> ErrorTable() { return kRows; }

const ErrorRow& RowOf(Code code) { return kRows[static_cast<size_t>(code)]; }

}  // namespace tocsin
