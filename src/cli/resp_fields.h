// The fields of a call as words of a RESP command, each by a function for its type. What HTTP would refuse because of a
// type is refused here with the same code: on this wire all are texts. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <boost/json.hpp>

#include "base/result.h"
#include "base/text.h"
#include "cli/output.h"

namespace tocsin::cli {

namespace json = boost::json;
using Words = std::vector<std::string>;

/// What a call says, wherever it stands.
struct Input {
  const json::object& body;
  json::object query;

  const json::value* Find(std::string_view name) const {
    const json::value* const value = body.if_contains(name);
    return value != nullptr ? value : query.if_contains(name);
  }
};

/// A field of a call, and the word before its value; without a word the value stands in its place, before all options.
struct Field {
  std::string_view name;
  std::string_view word;
  Status (*add)(Words& words, const Field& field, const Input& input);
};

/// Errors that HTTP would have from the server, in the same form.
template <class... Args>
std::unexpected<Error> Refuse(Code code, std::string_view field, fmt::format_string<Args...> format, Args&&... args) {
  const std::string name = Printable(Shown(field));
  return FailField(code, name, "{}: {} ({})", RowOf(code).name, fmt::format(format, std::forward<Args>(args)...), name);
}

std::unexpected<Error> WrongType(std::string_view name, std::string_view wanted);

// Each adds what the call says of its field, where it says it.
Status AddInteger(Words& words, const Field& field, const Input& input);
Status AddBool(Words& words, const Field& field, const Input& input);
/// One without a word is required.
Status AddText(Words& words, const Field& field, const Input& input);
/// Of `payload` and `payload_base64`, for both: the bytes are the same on this wire.
Status AddPayload(Words& words, const Field& field, const Input& input);
Status AddHeaders(Words& words, const Field& field, const Input& input);
Status AddConflict(Words& words, const Field& field, const Input& input);
/// Each must look like one: a word of ours among them would be taken for an option.
Status AddTokens(Words& words, const Field& field, const Input& input);
/// The field's word where the field is true.
Status AddSwitch(Words& words, const Field& field, const Input& input);
/// The settings of a delivery, each by its name.
Status AddDelivery(Words& words, const Field& field, const Input& input);
/// The field's word alone, always.
Status AddWord(Words& words, const Field& field, const Input& input);
/// Nothing: another field's function takes it.
Status AddNothing(Words& words, const Field& field, const Input& input);

}  // namespace tocsin::cli
