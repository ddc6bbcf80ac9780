// Field: one value that a call takes: its names on each wire, its kind, bounds and meaning. The doors, the command
// line, the OpenAPI document and the documents read the same rows.
//
// Arguments: what a call was given, decoded and checked against its fields. Its views point into the caller's bytes.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

#include "base/result.h"
#include "model/job.h"
#include "model/selector.h"

namespace tocsin::api {

enum class LoadBy : uint8_t { kAll, kTopic };

struct Arguments {
  NewJob job;  // its id and key also name the job that a call is about; its due time and payload are those below
  std::optional<int64_t> delay_ms;
  std::optional<int64_t> due_ms;
  PastDue past = PastDue::kRefuse;
  std::optional<std::string_view> payload;
  std::string_view event;
  std::optional<int64_t> by;
  std::optional<int64_t> max;
  std::optional<int64_t> wait_ms;
  std::optional<int64_t> lease_ms;
  std::string_view consumer;
  std::string_view access_token;
  std::string_view filter;
  std::string_view topic_sort;
  std::string_view order;
  std::optional<int64_t> offset;
  std::string_view kinds;
  std::string_view topics;
  bool dead = false;
  std::string_view reason;
  Selector where;
  Sort sort = Sort::kNone;
  TallyBy by_what = TallyBy::kNothing;
  std::string_view by_header;
  std::string_view action;
  bool all = false;
  bool dry_run = false;
  std::optional<int64_t> to_ms;
  std::optional<int64_t> over_ms;
  std::optional<int64_t> shift_ms;
  std::optional<int64_t> max_attempts;
  std::optional<int64_t> rate;
  std::optional<int64_t> matched_max;
  std::optional<int64_t> attempt;
  std::optional<int64_t> limit;
  std::string_view cursor;
  std::optional<int64_t> advance_ms;
  std::optional<int64_t> advance_to_ms;
  std::optional<int64_t> from_ms;
  std::optional<int64_t> step_ms;
  LoadBy load_by = LoadBy::kAll;
};

enum class FieldKind : uint8_t {
  kText,
  kName,  // a text that is not empty
  kNumber,
  kMillis,  // a span
  kMoment,  // milliseconds since 1970, UTC
  kFlag,
  kChoice,      // one of `choices`, kept as its index
  kBareChoice,  // the same; in RESP each choice after the first, the default, is a word by itself
  kPayload,
  kBase64,  // the payload, for wires that know only text
  kHeaders,
  kTokens,  // delivery tokens; each door reads them itself
  kNames,   // texts with commas between them, or an array in JSON; each one of `choices` if there are any
};

/// `kWhere`: a part of a selector, in the query of a GET and in the object `where` of a body.
enum class In : uint8_t { kBody, kQuery, kWhere, kResp /* only there */ };

using SetText = void (*)(Selector& to, std::string_view text);
using SetNumber = void (*)(Selector& to, int64_t number);

struct Field {
  std::string_view name;  // in JSON and in a query
  FieldKind kind = FieldKind::kText;
  /// Of a number, or of the bytes of a text.
  int64_t min = 0;
  int64_t max = std::numeric_limits<int64_t>::max();
  std::string_view doc;
  std::string_view fallback = {};  // as JSON; empty: none, or the topic's
  std::span<const std::string_view> choices = {};
  std::string_view word = {};  // of RESP; empty: none, or a positional argument if it is required
  std::string_view flag = {};  // of the command line; empty: none, or a positional argument
  In in = In::kBody;
  bool required = false;
  bool fixed = false;          // a positional argument of RESP, though not required elsewhere
  bool excludes_next = false;  // at most one of this field and the next is given
  std::variant<std::monostate, std::string_view NewJob::*, uint32_t NewJob::*, Trigger NewJob::*, OnConflict NewJob::*,
               bool Restored::*, uint32_t Restored::*, std::string_view Restored::*, Time Restored::*,
               std::string_view Arguments::*, std::optional<std::string_view> Arguments::*,
               std::optional<int64_t> Arguments::*, Sort Arguments::*, TallyBy Arguments::*, PastDue Arguments::*,
               LoadBy Arguments::*, bool Arguments::*, std::string Selector::*, SetText, SetNumber>
      member = {};
};

/// Who calls: errors use the names of the caller's wire.
enum class Wire : uint8_t { kJson, kResp };
std::string_view Label(const Field& field, Wire wire);

/// An integer in decimal, from `min` to `max`.
Result<int64_t> ReadNumber(std::string_view label, std::string_view text, int64_t min, int64_t max);

Status PutNumber(const Field& field, Wire wire, int64_t value, Arguments& to);
Status PutText(const Field& field, Wire wire, std::string_view text, Arguments& to);
void PutFlag(const Field& field, bool value, Arguments& to);
bool IsNumber(FieldKind kind);
/// Whether it tells the past of a copy of a job.
bool IsOfCopy(const Field& field);

/// What no single field shows: two that exclude each other are given, or a required one is missing. Tokens are the
/// door's to check.
Status CheckTogether(std::span<const Field> fields, Wire wire, const Arguments& arguments);

// Arguments -> what the use cases take.

/// Completes `arguments.job` with its due time and payload.
Status FinishJob(Wire wire, Arguments& arguments);
/// A new due time, a new payload or both.
Result<Amendment> AmendmentOf(Wire wire, const Arguments& arguments);
/// Without its token.
Settlement SettlementOf(SettleKind kind, const Arguments& arguments);
CountEvent EventOf(const Arguments& arguments);
inline JobRef JobOf(const Arguments& arguments) { return {.id = arguments.job.id, .key = arguments.job.key}; }

}  // namespace tocsin::api
