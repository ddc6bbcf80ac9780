// The one table of errors. Every error that leaves the server is a row here; the table maps it to the three wires and
// generates docs/errors.md (tools: `tocsind --print-docs errors`; a test fails when they differ).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tocsin {

enum class Code : uint8_t {
  kInvalidArgument,
  kUnknownField,
  kUnauthenticated,
  kForbidden,
  kTooLarge,
  kTopicNotFound,
  kNotFound,
  kMethodNotAllowed,
  kUnknownCommand,
  kTimedOut,
  kConflict,
  kOverCapacity,
  kOverloaded,
  kUnavailable,
  kStorageFull,
  kStorageFailed,
  kCorrupt,
  kUnsupportedFormat,
  kInUse,
  kShuttingDown,
  kIo,
  kInternal,
};

struct ErrorRow {
  Code code;
  std::string_view name;  // on the HTTP wire, and in lower case everywhere a code is printed
  int http;               // HTTP status
  std::string_view resp;  // first word of a RESP error
  std::string_view grpc;  // gRPC status name
  bool retry;             // whether the same call may succeed later
  std::string_view doc;
};

std::span<const ErrorRow> ErrorTable();
const ErrorRow& RowOf(Code code);

}  // namespace tocsin
