#include "frontend/resp/options.h"

#include <algorithm>
#include <set>

#include "api/syntax.h"
#include "base/text.h"

namespace tocsin::resp {
namespace {

using api::Arguments;
using api::Field;
using api::FieldKind;
using api::ReadNumber;
using api::Wire;

constexpr std::string_view kSwitch[] = {"false", "true"};

/// The index of `text` among `choices`, in any case.
Result<size_t> Choice(std::string_view word, std::string_view text, std::span<const std::string_view> choices) {
  for (size_t i = 0; i < choices.size(); ++i) {
    if (SameWord(text, choices[i])) return i;
  }
  return FailField(Code::kInvalidArgument, std::string(word), "{} is '{}': it takes one of {}", word, Shown(text),
                   fmt::join(choices, ", "));
}

Status TakeHeader(Values values, Arguments& to) {
  // Checked here and not only by Validate: the search below would be quadratic.
  if (to.job.headers.size() == kHeadersMax) {
    return FailField(Code::kTooLarge, "HEADER", "more than {} headers", kHeadersMax);
  }
  for (const HeaderView& header : to.job.headers) {
    if (header.name != values[0]) continue;
    return FailField(Code::kInvalidArgument, "HEADER", "HEADER {} is given twice", Shown(values[0]));
  }
  to.job.headers.push_back({values[0], values[1]});
  return {};
}

Status Take(const Field& field, std::string_view label, Values values, Arguments& to) {
  if (field.kind == FieldKind::kFlag) {
    PutFlag(field, true, to);
    return {};
  }
  if (field.kind == FieldKind::kHeaders) return TakeHeader(values, to);
  if (IsNumber(field.kind)) {
    TOCSIN_ASSIGN(const int64_t number, ReadNumber(label, values[0], field.min, field.max));
    return PutNumber(field, Wire::kResp, number, to);
  }
  if (field.kind == FieldKind::kChoice) {
    TOCSIN_ASSIGN(const size_t choice, Choice(label, values[0], field.choices));
    return PutText(field, Wire::kResp, field.choices[choice], to);
  }
  return PutText(field, Wire::kResp, values[0], to);
}

/// The choice that is a word by itself.
std::string_view BareChoice(const Field& field, std::string_view word) {
  if (field.kind != FieldKind::kBareChoice) return {};
  const auto choice =
      std::ranges::find_if(field.choices.subspan(1), [&](std::string_view each) { return SameWord(word, each); });
  return choice == field.choices.end() ? std::string_view() : *choice;
}

std::unexpected<Error> UnknownOption(std::string_view word, const std::vector<std::string>& known) {
  return UnknownWord("option", word, std::vector<std::string_view>(known.begin(), known.end()));
}

// The settings of a topic and of its sink.

Status TakeSetting(TopicChange& change, const TopicSetting& setting, std::string_view word, std::string_view text) {
  uint64_t value = 0;
  if (setting.kind == SettingKind::kFlag) {
    TOCSIN_ASSIGN(value, Choice(word, text, kSwitch));
  } else {
    const auto max = static_cast<int64_t>(setting.max);
    TOCSIN_ASSIGN(const int64_t number, ReadNumber(word, text, static_cast<int64_t>(setting.min), max));
    value = static_cast<uint64_t>(number);
  }
  change.settings.emplace_back(&setting, value);
  return {};
}

/// Validate checks whether the topic's sink takes the setting.
Status TakeDelivery(DeliveryChange& change, std::string_view name, std::string_view word, std::string_view text) {
  if (name == "sink") {
    const auto sinks = api::DeliveryNames();
    TOCSIN_ASSIGN(const size_t sink, Choice(word, text, sinks));
    change.sink = sinks[sink];
    return {};
  }
  const auto field = std::ranges::find(DeliveryFields(), name, &DeliveryField::name);
  if (field->kind == DeliveryFieldKind::kFlag) {
    TOCSIN_ASSIGN(const size_t flag, Choice(word, text, kSwitch));
    text = kSwitch[flag];
  }
  change.settings.insert_or_assign(std::string(name), std::string(text));
  return {};
}

Status TakeSetting(TopicChange& change, std::string_view name, std::string_view word, std::string_view text) {
  if (const TopicSetting* const setting = FindTopicSetting(name)) return TakeSetting(change, *setting, word, text);
  if (!change.delivery) change.delivery.emplace();
  return TakeDelivery(*change.delivery, name, word, text);
}

}  // namespace

std::unexpected<Error> MissingValue(std::string_view word, size_t needed, size_t given) {
  if (needed == 1) return FailField(Code::kInvalidArgument, std::string(word), "{} needs a value", word);
  return FailField(Code::kInvalidArgument, std::string(word), "{} needs {} values, and has {}", word, needed, given);
}

std::unexpected<Error> GivenTwice(std::string_view word) {
  return FailField(Code::kInvalidArgument, std::string(word), "{} is given twice", word);
}

std::unexpected<Error> UnknownWord(std::string_view kind, std::string_view word,
                                   std::span<const std::string_view> known) {
  std::string hint = DidYouMean(Capitals(word.substr(0, 64)), known);
  if (hint.empty()) hint = fmt::format("; the known ones are {}", fmt::join(known, ", "));
  return FailField(Code::kUnknownField, Shown(word), "unknown {} '{}'{}", kind, Shown(word), hint);
}

Status ReadWords(Values args, std::span<const Field> fields, Arguments& to) {
  uint64_t seen = 0;
  while (!args.empty()) {
    const std::string_view word = args.front();
    size_t i = 0;
    std::string_view bare;
    for (; i < fields.size(); ++i) {
      if (!fields[i].word.empty() && SameWord(word, fields[i].word)) break;
      if (bare = BareChoice(fields[i], word); !bare.empty()) break;
    }
    if (i == fields.size()) return UnknownOption(word, api::RespWords(fields));
    const Field& field = fields[i];
    const std::string label = field.word.empty() ? Capitals(bare) : std::string(field.word);
    if ((seen >> i & 1U) != 0 && field.kind != FieldKind::kHeaders) {
      if (bare.empty()) return GivenTwice(label);
      return FailField(Code::kInvalidArgument, label, "{} exclude each other: give one of them",
                       fmt::join(api::RespWords({&field, 1}), " and "));
    }
    seen |= uint64_t{1} << i;
    const size_t values = api::ValuesOf(field);
    if (args.size() <= values) return MissingValue(label, values, args.size() - 1);
    TOCSIN_TRY(bare.empty() ? Take(field, label, args.subspan(1, values), to) : PutText(field, Wire::kResp, bare, to));
    args = args.subspan(1 + values);
  }
  return {};
}

Status ReadArguments(Values args, const api::Verb& verb, Arguments& to) {
  const auto next = [&] {
    const Values first = args.first(1);
    args = args.subspan(1);
    return first;
  };
  if (verb.HasId()) to.job.id = next()[0];
  for (const Field& field : verb.fields) {
    if (api::IsFixed(field)) TOCSIN_TRY(Take(field, field.name, next(), to));
  }
  TOCSIN_TRY(ReadWords(args, verb.fields, to));
  return CheckTogether(verb.fields, Wire::kResp, to);
}

Result<TopicChange> ReadSettings(Values args) {
  TopicChange change;
  std::set<std::string_view> seen;
  while (!args.empty()) {
    const auto name =
        std::ranges::find_if(api::SettingNames(), [&](const auto& each) { return SameWord(args[0], each); });
    if (name == api::SettingNames().end()) {
      std::vector<std::string> words;
      for (const std::string& each : api::SettingNames()) words.push_back(Capitals(each));
      return UnknownOption(args[0], words);
    }
    const std::string word = Capitals(*name);
    if (!seen.insert(*name).second) return GivenTwice(word);
    if (args.size() == 1) return MissingValue(word, 1, 0);
    TOCSIN_TRY(TakeSetting(change, *name, word, args[1]));
    args = args.subspan(2);
  }
  return change;
}

}  // namespace tocsin::resp
