#include "api/field.h"

#include <algorithm>
#include <charconv>
#include <type_traits>

#include "base/text.h"

namespace tocsin::api {
namespace {

/// The struct that a member pointer points into.
NewJob& Owner(Arguments& arguments, const auto NewJob::* /*member*/) { return arguments.job; }
Arguments& Owner(Arguments& arguments, const auto Arguments::* /*member*/) { return arguments; }
Selector& Owner(Arguments& arguments, const auto Selector::* /*member*/) { return arguments.where; }

/// Made when the first of its fields is given.
Restored& Owner(Arguments& arguments, const auto Restored::* /*member*/) {
  if (!arguments.job.restored) arguments.job.restored = std::make_shared<Restored>();
  return *arguments.job.restored;
}

/// Calls `visit` with a reference to what the field is kept in.
template <class Visit>
void VisitMember(const Field& field, Arguments& arguments, Visit visit) {
  std::visit(
      [&]<class Member>(Member member) {
        if constexpr (std::is_member_pointer_v<Member>) visit(Owner(arguments, member).*member);
      },
      field.member);
}

constexpr bool IsOfRestored(const auto& /*member*/) { return false; }
template <class T>
constexpr bool IsOfRestored(T Restored::* const& /*member*/) {
  return true;
}

/// Of a field that is required, or that excludes another: no field of a copy does.
bool IsGiven(const Field& field, const Arguments& arguments) {
  bool given = false;
  if (IsOfCopy(field)) return given;
  VisitMember(field, const_cast<Arguments&>(arguments), [&]<class T>(const T& value) {
    if constexpr (requires { value.has_value(); }) given = value.has_value();
    if constexpr (std::is_same_v<T, std::string_view>) given = !value.empty();
    if constexpr (std::is_same_v<T, bool>) given = value;
  });
  return given;
}

/// Texts with commas between them.
Status PutNames(const Field& field, Wire wire, std::string_view texts, Arguments& to) {
  const std::string_view label = Label(field, wire);
  while (!texts.empty()) {
    const std::string_view text = texts.substr(0, texts.find(','));
    texts.remove_prefix(std::min(texts.size(), text.size() + 1));
    const bool known = field.choices.empty() || std::ranges::find(field.choices, text) != field.choices.end();
    if (!known || text.empty()) {
      return FailField(Code::kInvalidArgument, std::string(label), "{} has '{}': it takes {}", label, Shown(text),
                       field.choices.empty() ? "names with commas between them"
                                             : fmt::format("some of {}", fmt::join(field.choices, ", ")));
    }
    if (to.where.ids.size() >= kSelectedIdsMax) {
      return FailField(Code::kTooLarge, std::string(label), "{} names more than {} jobs", label, kSelectedIdsMax);
    }
    std::get<SetText>(field.member)(to.where, text);
  }
  return {};
}

Status PutChoice(const Field& field, Wire wire, std::string_view text, Arguments& to) {
  const auto choice = std::ranges::find(field.choices, text);
  if (choice == field.choices.end()) {
    const std::string_view label = Label(field, wire);
    return FailField(Code::kInvalidArgument, std::string(label), "{} is '{}': it takes one of {}", label, Shown(text),
                     fmt::join(field.choices, ", "));
  }
  VisitMember(field, to, [&]<class T>(T& value) {
    if constexpr (std::is_enum_v<T>) value = static_cast<T>(choice - field.choices.begin());
    if constexpr (std::is_same_v<T, std::string_view>) value = *choice;
    if constexpr (std::is_same_v<T, bool>) value = choice != field.choices.begin();
  });
  return {};
}

template <class Item>
void SetWhen(const Arguments& arguments, Item& item) {
  item.timeline = arguments.due_ms ? Timeline::kUtc : Timeline::kSteady;
  item.delay = Millis(arguments.delay_ms.value_or(0));
  item.due = arguments.due_ms ? FromMs(*arguments.due_ms) : Time{};
  item.past = arguments.past;
}

/// "delay_ms or due_ms" in the words of the wire.
std::string_view WhenLabels(Wire wire) { return wire == Wire::kJson ? "delay_ms or due_ms" : "DELAY or AT"; }

}  // namespace

std::string_view Label(const Field& field, Wire wire) {
  return wire == Wire::kResp && !field.word.empty() ? field.word : field.name;
}

bool IsOfCopy(const Field& field) {
  return std::visit([](const auto& member) { return IsOfRestored(member); }, field.member);
}

bool IsNumber(FieldKind kind) {
  return kind == FieldKind::kNumber || kind == FieldKind::kMillis || kind == FieldKind::kMoment;
}

Result<int64_t> ReadNumber(std::string_view label, std::string_view text, int64_t min, int64_t max) {
  int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc{} && at == end && value >= min && value <= max) return value;
  return FailField(Code::kInvalidArgument, std::string(label), "{} is '{}': it takes an integer from {} to {}", label,
                   Shown(text), min, max);
}

Status PutNumber(const Field& field, Wire wire, int64_t value, Arguments& to) {
  if (value < field.min || value > field.max) {
    const std::string_view label = Label(field, wire);
    return FailField(Code::kInvalidArgument, std::string(label), "{} is {}: the range is {} to {}", label, value,
                     field.min, field.max);
  }
  VisitMember(field, to, [&]<class T>(T& member) {
    if constexpr (std::is_same_v<T, uint32_t>) member = static_cast<uint32_t>(value);
    if constexpr (std::is_same_v<T, std::optional<int64_t>>) member = value;
    if constexpr (std::is_same_v<T, Time>) member = FromMs(value);
  });
  if (const auto* set = std::get_if<SetNumber>(&field.member)) (*set)(to.where, value);
  return {};
}

Status PutText(const Field& field, Wire wire, std::string_view text, Arguments& to) {
  if (field.kind == FieldKind::kNames) return PutNames(field, wire, text, to);
  if (!field.choices.empty()) return PutChoice(field, wire, text, to);
  if (field.kind == FieldKind::kName && text.empty()) {
    const std::string_view label = Label(field, wire);
    return FailField(Code::kInvalidArgument, std::string(label), "{} is empty: it takes 1 to {} bytes", label,
                     field.max);
  }
  VisitMember(field, to, [&]<class T>(T& member) {
    if constexpr (std::is_assignable_v<T&, std::string_view>) member = text;
  });
  if (const auto* set = std::get_if<SetText>(&field.member)) (*set)(to.where, text);
  return {};
}

void PutFlag(const Field& field, bool value, Arguments& to) {
  VisitMember(field, to, [&]<class T>(T& member) {
    if constexpr (std::is_same_v<T, bool>) member = value;
  });
}

Status CheckTogether(std::span<const Field> fields, Wire wire, const Arguments& arguments) {
  for (size_t i = 0; i < fields.size(); ++i) {
    const Field& field = fields[i];
    const bool given = IsGiven(field, arguments);
    const std::string label(Label(field, wire));
    if (field.required && !given && field.kind != FieldKind::kTokens) {
      return FailField(Code::kInvalidArgument, label, "{} is missing. {}", label, field.doc);
    }
    // A payload has two forms that share a member: the decoder sees whether both are given.
    if (!field.excludes_next || !given || field.kind == FieldKind::kPayload) continue;
    if (IsGiven(fields[i + 1], arguments)) {
      const std::string other(Label(fields[i + 1], wire));
      return FailField(Code::kInvalidArgument, other, "{} and {} exclude each other: give one of them", label, other);
    }
  }
  return {};
}

Status FinishJob(Wire wire, Arguments& arguments) {
  if (arguments.job.trigger == Trigger::kEither && !arguments.delay_ms && !arguments.due_ms) {
    return FailField(Code::kInvalidArgument, wire == Wire::kJson ? "delay_ms" : "DELAY",
                     "a job with the trigger either needs {} too", WhenLabels(wire));
  }
  SetWhen(arguments, arguments.job);
  arguments.job.payload = arguments.payload.value_or(std::string_view());
  return {};
}

Result<Amendment> AmendmentOf(Wire wire, const Arguments& arguments) {
  const bool reschedules = arguments.delay_ms || arguments.due_ms;
  if (!reschedules && !arguments.payload) {
    return Fail(Code::kInvalidArgument, "nothing to change: give {} or {}", WhenLabels(wire),
                wire == Wire::kJson ? "payload" : "PAYLOAD");
  }
  Amendment amendment{.job = JobOf(arguments),
                      .kind = reschedules ? AmendKind::kReschedule : AmendKind::kPayload,
                      .payload = arguments.payload};
  SetWhen(arguments, amendment);
  if (arguments.attempt) amendment.seen = Seen{.attempt = static_cast<uint32_t>(*arguments.attempt)};
  return amendment;
}

Settlement SettlementOf(SettleKind kind, const Arguments& arguments) {
  Settlement settlement{.kind = arguments.dead ? SettleKind::kBury : kind,
                        .lease = Millis(arguments.lease_ms.value_or(0)),
                        .reason = arguments.reason};
  if (arguments.delay_ms) settlement.delay = Millis(*arguments.delay_ms);
  return settlement;
}

CountEvent EventOf(const Arguments& arguments) {
  return {.job = JobOf(arguments), .event = arguments.event, .by = static_cast<uint32_t>(arguments.by.value_or(1))};
}

}  // namespace tocsin::api
