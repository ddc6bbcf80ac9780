#include "frontend/http/unknown_field.h"

#include "base/nearest.h"

namespace tocsin::http {
std::unexpected<Error> UnknownField(std::string_view name, std::span<const std::string_view> known) {
  const std::string shown = Shown(name);
  std::string hint = DidYouMean(name, known);
  if (known.empty()) hint = "; none is known here";
  if (hint.empty()) hint = fmt::format("; the known ones are {}", fmt::join(known, ", "));
  return FailField(Code::kUnknownField, shown, "unknown field \"{}\"{}", shown, hint);
}

}  // namespace tocsin::http
