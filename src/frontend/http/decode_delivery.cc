// What consumers say: reserve, ack, nack, extend.
#include "frontend/http/decode.h"
#include "frontend/http/fields.h"

namespace tocsin::http {
namespace {

namespace json = boost::json;

struct SettleDraft {
  const Limits& limits;
  const json::value* tokens = nullptr;
  Settlement each;  // what holds for every token
  bool dead = false;
};

Status TakeTokens(SettleDraft& draft, std::string_view, const json::value& value) {
  draft.tokens = &value;
  return {};
}

constexpr Field<SettleDraft> kAckFields[] = {{"tokens", TakeTokens}};
constexpr Field<SettleDraft> kNackFields[] = {
    {"tokens", TakeTokens},
    {"delay_ms", [](SettleDraft& d, std::string_view name,
                    const json::value& v) { return Put(d.each.delay, AsInteger(name, v, 0, kDelayMax.count())); }},
    {"reason",
     [](SettleDraft& d, std::string_view name, const json::value& v) { return Put(d.each.reason, AsText(name, v)); }},
    {"dead", [](SettleDraft& d, std::string_view name, const json::value& v) { return Put(d.dead, AsBool(name, v)); }},
};
constexpr Field<SettleDraft> kExtendFields[] = {
    {"tokens", TakeTokens},
    {"lease_ms",
     [](SettleDraft& d, std::string_view name, const json::value& v) {
       return Put(d.each.lease, AsInteger(name, v, 1, d.limits.lease_max.count()));
     }},
};

Status ReadSettle(SettleDraft& draft, const json::object& root) {
  switch (draft.each.kind) {
    case SettleKind::kNack:
      return ReadFields(draft, root, kNackFields);
    case SettleKind::kExtend:
      return ReadFields(draft, root, kExtendFields);
    case SettleKind::kAck:
    case SettleKind::kRelease:
    case SettleKind::kBury:
      break;
  }
  return ReadFields(draft, root, kAckFields);
}

/// A nack that says `dead` leaves no attempt, and so no delay.
Status TakeDead(SettleDraft& draft) {
  if (!draft.dead) return {};
  if (draft.each.delay) {
    return FailField(Code::kInvalidArgument, "delay_ms", "delay_ms and dead: a dead letter is not tried again");
  }
  draft.each.kind = SettleKind::kBury;
  return {};
}

}  // namespace

Result<ReserveRequest> DecodeReserve(std::string topic, const Document& document, const Limits& limits) {
  struct Draft {
    ReserveRequest request;
    const Limits& limits;
  };
  static constexpr Field<Draft> kFields[] = {
      {"max",
       [](Draft& d, std::string_view name, const json::value& v) {
         return Put(d.request.max, AsInteger(name, v, 1, static_cast<int64_t>(d.limits.batch)));
       }},
      {"wait_ms",
       [](Draft& d, std::string_view name, const json::value& v) {
         return Put(d.request.wait, AsInteger(name, v, 0, d.limits.wait_max.count()));
       }},
      {"lease_ms",
       [](Draft& d, std::string_view name, const json::value& v) {
         return Put(d.request.lease, AsInteger(name, v, 1, d.limits.lease_max.count()));
       }},
  };
  Draft draft{.request = {.topic = std::move(topic)}, .limits = limits};
  TOCSIN_TRY(ReadFields(draft, document.root(), kFields));
  return std::move(draft.request);
}

Result<SettleRequest> DecodeSettle(SettleKind kind, std::string topic, std::shared_ptr<Document> document,
                                   const Limits& limits) {
  SettleDraft draft{.limits = limits};
  draft.each.kind = kind;
  TOCSIN_TRY(ReadSettle(draft, document->root()));
  TOCSIN_TRY(TakeDead(draft));
  if (draft.tokens == nullptr) return FailField(Code::kInvalidArgument, "tokens", "tokens is missing");
  const auto array = AsBatch("tokens", *draft.tokens, limits.batch);
  if (!array) return std::unexpected(array.error());

  SettleRequest request{.topic = std::move(topic), .settlements = {}, .bytes = {}};
  request.settlements.reserve((*array)->size());
  for (const json::value& element : **array) {
    const auto* text = element.if_string();
    const auto token = text == nullptr ? std::nullopt : ParseToken(View(*text));
    if (!token) {
      return FailField(Code::kInvalidArgument, fmt::format("tokens[{}]", request.settlements.size()),
                       "this is not a token that a reserve gave out");
    }
    request.settlements.emplace_back(draft.each).token = *token;
  }
  request.bytes = std::move(document);
  return request;
}

}  // namespace tocsin::http
