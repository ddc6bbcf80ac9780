// Reading one JSON object by a table of its known fields. A decoder is a table: a name and the function that takes its
// value; what the table does not name is refused.
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
#include "frontend/http/unknown_field.h"

namespace tocsin::http {

template <class Draft>
struct Field {
  std::string_view name;
  Status (*take)(Draft& draft, std::string_view name, const boost::json::value& value);
};

inline std::string_view View(const boost::json::string& text) { return {text.data(), text.size()}; }

/// Calls each field's function, in the order of the object.
template <class Draft, size_t kCount>
Status ReadFields(Draft& draft, const boost::json::object& object, const Field<Draft> (&table)[kCount]) {
  for (const auto& [key, value] : object) {
    const std::string_view name(key.data(), key.size());
    const Field<Draft>* field = std::ranges::find(table, name, &Field<Draft>::name);
    if (field == std::end(table)) {
      std::vector<std::string_view> known;
      for (const auto& one : table) known.push_back(one.name);
      return UnknownField(name, known);
    }
    TOCSIN_TRY(field->take(draft, name, value));
  }
  return {};
}

Result<std::string_view> AsText(std::string_view name, const boost::json::value& value);
/// An integer from `low` to `high`; 1.0 and 1e3 are not integers.
Result<int64_t> AsInteger(std::string_view name, const boost::json::value& value, int64_t low, int64_t high);
/// Milliseconds from 0; a smaller upper bound than the type's is the service's to check.
Result<Millis> AsMillis(std::string_view name, const boost::json::value& value);
/// The array of a batch, at most `batch_max` long and not empty.
Result<const boost::json::array*> AsBatch(std::string_view name, const boost::json::value& value, size_t batch_max);
Result<bool> AsBool(std::string_view name, const boost::json::value& value);

/// Puts a Result into `to`, or passes its error on.
template <class To, class From>
Status Put(To& to, Result<From> value) {
  if (!value) return std::unexpected(std::move(value).error());
  to = static_cast<To>(*value);
  return {};
}

/// The same for a field that may be missing.
template <class To, class From>
Status Put(std::optional<To>& to, Result<From> value) {
  if (!value) return std::unexpected(std::move(value).error());
  to = static_cast<To>(*value);
  return {};
}

/// `error` with the field's path put before its field's name.
Error Within(Error error, std::string_view path);

/// An error of the service in the words of the wire: milliseconds for spans and moments (delay is delay_ms), and in a
/// batch the path of the element.
Error OnTheWire(Error error);

}  // namespace tocsin::http
