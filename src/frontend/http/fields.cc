#include "frontend/http/fields.h"

#include "base/nearest.h"
#include "base/text.h"

namespace tocsin::http {
namespace {

std::string_view KindOf(const boost::json::value& value) {
  // In the order of boost::json::kind.
  constexpr std::string_view kKinds[] = {
      "null",     "true or false", "an integer", "an integer", "a number with a fraction or an exponent",
      "a string", "an array",      "an object"};
  static_assert(static_cast<size_t>(boost::json::kind::object) + 1 == std::size(kKinds));
  return kKinds[static_cast<size_t>(value.kind())];
}

}  // namespace

Result<std::string_view> AsText(std::string_view name, const boost::json::value& value) {
  if (const auto* text = value.if_string()) return View(*text);
  return FailField(Code::kInvalidArgument, std::string(name), "{} is {}: it takes a string", name, KindOf(value));
}

Result<int64_t> AsInteger(std::string_view name, const boost::json::value& value, int64_t low, int64_t high) {
  if (const auto* number = value.if_int64(); number != nullptr && *number >= low && *number <= high) return *number;
  if (value.is_int64() || value.is_uint64()) {
    return FailField(Code::kInvalidArgument, std::string(name), "{} is {}: the range is {} to {}", name,
                     value.is_int64() ? fmt::to_string(value.get_int64()) : fmt::to_string(value.get_uint64()), low,
                     high);
  }
  return FailField(Code::kInvalidArgument, std::string(name), "{} is {}: it takes an integer", name, KindOf(value));
}

Result<const boost::json::array*> AsBatch(std::string_view name, const boost::json::value& value, size_t batch_max) {
  const auto* array = value.if_array();
  if (array == nullptr) return FailField(Code::kInvalidArgument, std::string(name), "{} takes an array", name);
  if (array->empty() || array->size() > batch_max) {
    return FailField(Code::kInvalidArgument, std::string(name), "{} has {} elements: the range is 1 to {}", name,
                     array->size(), batch_max);
  }
  return array;
}

Result<bool> AsBool(std::string_view name, const boost::json::value& value) {
  if (const auto* truth = value.if_bool()) return *truth;
  return FailField(Code::kInvalidArgument, std::string(name), "{} takes true or false", name);
}

std::unexpected<Error> UnknownField(std::string_view name, std::span<const std::string_view> known) {
  const std::string shown = Shown(name);
  std::string hint = DidYouMean(name, known);
  if (known.empty()) hint = "; none is known here";
  if (hint.empty()) hint = fmt::format("; the known ones are {}", fmt::join(known, ", "));
  return FailField(Code::kUnknownField, shown, "unknown field \"{}\"{}", shown, hint);
}

Error Within(Error error, std::string_view path) {
  error.field = error.field.empty() ? std::string(path) : fmt::format("{}.{}", path, error.field);
  return error;
}

Error OnTheWire(Error error) {
  for (const std::string_view name : {"delay", "due", "wait", "lease"}) {
    if (error.field != name) continue;
    const size_t at = error.message.find(fmt::format("{} is ", name));
    if (at != std::string::npos) error.message.insert(at + name.size(), "_ms");
    error.field += "_ms";
    break;
  }
  // The service puts the element of a batch before the message: "jobs[2]: ...".
  const size_t end = error.message.find("]: ");
  if (end == std::string::npos || !(error.message.starts_with("jobs[") || error.message.starts_with("tokens["))) {
    return error;
  }
  const std::string path = error.message.substr(0, end + 1);
  return Within(std::move(error), path);
}

}  // namespace tocsin::http
