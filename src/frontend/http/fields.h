// JSON values -> typed values, with errors that name the field.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "base/result.h"
#include "base/time.h"

namespace tocsin::http {

inline std::string_view View(const boost::json::string& text) { return {text.data(), text.size()}; }

Result<std::string_view> AsText(std::string_view name, const boost::json::value& value);
/// An integer from `low` to `high`; 1.0 and 1e3 are not integers.
Result<int64_t> AsInteger(std::string_view name, const boost::json::value& value, int64_t low, int64_t high);
/// The array of a batch, at most `batch_max` long and not empty.
Result<const boost::json::array*> AsBatch(std::string_view name, const boost::json::value& value, size_t batch_max);
Result<bool> AsBool(std::string_view name, const boost::json::value& value);

/// The error for a name that this call does not know, with the nearest known one: most unknown names are typing errors.
std::unexpected<Error> UnknownField(std::string_view name, std::span<const std::string_view> known);

/// `error` with the field's path put before its field's name.
Error Within(Error error, std::string_view path);

/// An error of the service in the words of the wire: milliseconds for spans and moments (delay is delay_ms), and in a
/// batch the path of the element.
Error OnTheWire(Error error);

}  // namespace tocsin::http
