#include "frontend/http/unknown_field.h"

#include "base/nearest.h"
#include "frontend/http/text.h"

namespace tocsin::http {
namespace {

constexpr size_t kShownBytes = 64;

}  // namespace

std::string Shown(std::string_view name) {
  if (name.size() <= kShownBytes) return std::string(name);
  std::string_view cut = name.substr(0, kShownBytes);
  while (!cut.empty() && !IsUtf8(cut)) cut.remove_suffix(1);
  return fmt::format("{}...", cut);
}

std::unexpected<Error> UnknownField(std::string_view name, std::span<const std::string_view> known) {
  const std::string shown = Shown(name);
  std::string hint = DidYouMean(name, known);
  if (known.empty()) hint = "; none is known here";
  if (hint.empty()) hint = fmt::format("; the known ones are {}", fmt::join(known, ", "));
  return FailField(Code::kUnknownField, shown, "unknown field \"{}\"{}", shown, hint);
}

}  // namespace tocsin::http
