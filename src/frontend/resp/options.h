// The words behind a command's fixed arguments: DELAY 1000 KEEP HEADER name value. One table for each command; an
// unknown word is answered with the nearest known one, and each is taken once unless it repeats.
#pragma once

#include <charconv>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/nearest.h"
#include "base/result.h"
#include "base/text.h"
#include "base/time.h"
#include "frontend/resp/words.h"

namespace tocsin::resp {

using Values = std::span<const std::string_view>;

template <class Draft>
struct Option {
  std::string_view word;  // in capitals
  size_t values;          // that stand behind it
  Status (*take)(Draft& draft, std::string_view word, Values values);
  bool repeats = false;
};

/// An integer in decimal, from `min` to `max`.
Result<int64_t> Number(std::string_view word, std::string_view text, int64_t min, int64_t max);

template <class To>
Status Put(To& to, Result<int64_t> number) {
  if (!number) return std::unexpected(std::move(number).error());
  to = To(*number);
  return {};
}
template <class To>
  requires std::is_arithmetic_v<To>
Status Put(To& to, Result<int64_t> number) {
  if (!number) return std::unexpected(std::move(number).error());
  to = static_cast<To>(*number);
  return {};
}

/// The place of a word in a list of words in small letters.
template <class Enum>
Status PutChoice(Enum& to, std::string_view word, std::string_view text, std::span<const std::string_view> choices) {
  for (size_t i = 0; i < choices.size(); ++i) {
    if (!SameWord(text, choices[i])) continue;
    to = static_cast<Enum>(i);
    return {};
  }
  return FailField(Code::kInvalidArgument, std::string(word), "{} is '{}': it takes one of {}", word, Shown(text),
                   fmt::join(choices, ", "));
}

/// `kind` is what the known ones are: an option, a subcommand.
std::unexpected<Error> UnknownWord(std::string_view kind, std::string_view word,
                                   std::span<const std::string_view> known);
std::unexpected<Error> MissingValue(std::string_view word, size_t needed, size_t given);

template <class Draft>
std::unexpected<Error> UnknownOption(std::string_view word, std::span<const Option<Draft>> options) {
  std::vector<std::string_view> known;
  for (const auto& option : options) known.push_back(option.word);
  return UnknownWord("option", word, known);
}

/// Takes the option that stands first in `args`, and returns how many of them it took.
template <class Draft>
Result<size_t> TakeOption(Draft& draft, Values args, std::span<const Option<Draft>> options, uint32_t& seen) {
  for (size_t i = 0; i < options.size(); ++i) {
    const Option<Draft>& option = options[i];
    if (!SameWord(args.front(), option.word)) continue;
    if ((seen >> i & 1U) != 0 && !option.repeats) {
      return FailField(Code::kInvalidArgument, std::string(option.word), "{} is given twice", option.word);
    }
    seen |= 1U << i;
    if (args.size() <= option.values) return MissingValue(option.word, option.values, args.size() - 1);
    TOCSIN_TRY(option.take(draft, option.word, args.subspan(1, option.values)));
    return 1 + option.values;
  }
  return UnknownOption(args.front(), options);
}

template <class Draft>
Status ReadOptions(Draft& draft, Values args, std::span<const Option<Draft>> options) {
  uint32_t seen = 0;
  while (!args.empty()) {
    const auto taken = TakeOption<Draft>(draft, args, options, seen);
    if (!taken) return std::unexpected(taken.error());
    args = args.subspan(*taken);
  }
  return {};
}

template <class Draft, size_t kSize>
Status ReadOptions(Draft& draft, Values args, const Option<Draft> (&options)[kSize]) {
  return ReadOptions<Draft>(draft, args, std::span<const Option<Draft>>(options));
}

}  // namespace tocsin::resp
