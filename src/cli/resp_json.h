// Replies of RESP as the JSON that HTTP shows for the same: the same names in the same order. Pure.
#pragma once

#include <string_view>

#include <boost/json/object.hpp>

#include "cli/resp_reader.h"

namespace tocsin::cli {

/// A text that is no UTF-8 is replaced by words that say so: JSON cannot carry it.
boost::json::value ToJson(const RespValue& value);
/// Of an array's item; null where it has no such.
boost::json::value JsonAt(const RespValue& array, size_t index);
/// Of a map.
boost::json::object ObjectJson(const RespValue& map);

/// Of a job as JOB.GET shows it: its payload is bytes.
boost::json::object JobJson(const RespValue& map);
/// Of a job as JOB.RESERVE delivers it: [id, token, payload, attempt, max_attempts, due_ms, lease_deadline_ms, key,
/// headers].
boost::json::object DeliveredJson(const RespValue& array);
/// Of the lines of INFO.
boost::json::object StatsJson(std::string_view info);

}  // namespace tocsin::cli
