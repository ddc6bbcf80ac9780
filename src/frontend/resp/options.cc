#include "frontend/resp/options.h"

namespace tocsin::resp {

Result<int64_t> Number(std::string_view word, std::string_view text, int64_t min, int64_t max) {
  int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc{} && at == end && value >= min && value <= max) return value;
  return FailField(Code::kInvalidArgument, std::string(word), "{} is '{}': it takes an integer from {} to {}", word,
                   Shown(text), min, max);
}

std::unexpected<Error> UnknownWord(std::string_view kind, std::string_view word,
                                   std::span<const std::string_view> known) {
  std::string hint = DidYouMean(Capitals(word.substr(0, 64)), known);
  if (hint.empty()) hint = fmt::format("; the known ones are {}", fmt::join(known, ", "));
  return FailField(Code::kUnknownField, Shown(word), "unknown {} '{}'{}", kind, Shown(word), hint);
}

std::unexpected<Error> MissingValue(std::string_view word, size_t needed, size_t given) {
  if (needed == 1) return FailField(Code::kInvalidArgument, std::string(word), "{} needs a value", word);
  return FailField(Code::kInvalidArgument, std::string(word), "{} needs {} values, and has {}", word, needed, given);
}

}  // namespace tocsin::resp
