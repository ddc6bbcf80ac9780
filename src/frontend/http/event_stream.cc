#include "frontend/http/event_stream.h"

#include <algorithm>

#include "base/comma_list.h"
#include "base/text.h"
#include "frontend/http/json_writer.h"
#include "frontend/http/router.h"
#include "frontend/http/server.h"
#include "frontend/shared/activity_views.h"
#include "model/topic.h"

namespace tocsin::http {
namespace {

constexpr size_t kTaken = 8;              // events at once
constexpr size_t kPieceBytes = 64 << 10;  // a piece ends behind it

std::string_view NameOf(EventHub::Begin begin) {
  constexpr std::string_view kNames[] = {"start", "", "unknown", "too_old"};
  return kNames[static_cast<size_t>(begin)];
}

}  // namespace

Result<uint32_t> ParseEventKinds(std::string_view text) {
  if (text.empty()) return UINT32_MAX;
  uint32_t kinds = 0;
  for (const std::string_view name : CommaList(text)) {
    const auto* const found = std::ranges::find(kEventKindNames, name);
    if (found == kEventKindNames.end()) {
      return FailField(Code::kInvalidArgument, "kinds", "kinds has '{}': it takes some of {}", Shown(name),
                       fmt::join(kEventKindNames, ", "));
    }
    kinds |= 1U << static_cast<unsigned>(found - kEventKindNames.begin());
  }
  return kinds;
}

Result<std::vector<std::string>> ParseEventTopics(std::string_view text) {
  std::vector<std::string> topics;
  for (const std::string_view name : CommaList(text)) {
    if (const Status valid = ValidateTopicName(name); !valid) {
      return FailField(Code::kInvalidArgument, "topics", "topics: {}", valid.error().message);
    }
    if (topics.size() == EventStream::kTopicsMax) {
      return FailField(Code::kInvalidArgument, "topics", "topics has more than {} names", EventStream::kTopicsMax);
    }
    topics.emplace_back(name);
  }
  std::ranges::sort(topics);
  topics.erase(std::ranges::unique(topics).begin(), topics.end());
  return topics;
}

Status EventStream::Open(EventHub& hub, EventInterest interest, std::string_view last_id) {
  hub_ = &hub;
  sent_at_ = loop_.clock().IoNow();
  auto wake = [weak = weak_from_this(), &loop = loop_] {
    loop.Post([weak] {
      if (const auto stream = weak.lock()) stream->Give();
    });
  };
  TOCSIN_ASSIGN(listener_, hub.Listen(std::move(interest), last_id, std::move(wake)));
  return {};
}

std::string EventStream::Beginning() const {
  std::string text = "retry: 2000\n\n";
  if (listener_->begin() != EventHub::Begin::kGoesOn) AppendReset(text, listener_->start(), NameOf(listener_->begin()));
  return text;
}

void EventStream::AppendReset(std::string& out, uint64_t number, std::string_view reason) const {
  fmt::format_to(std::back_inserter(out), "id: {}\nevent: reset\ndata: {{\"reason\":\"{}\",\"now_ms\":{}}}\n\n",
                 hub_->IdOf(number), reason, ToMs(loop_.clock().Now().utc));
}

void EventStream::Next(TakePiece take) {
  take_ = std::move(take);
  Give();
}

void EventStream::Give() {
  if (!take_) return;
  Piece piece;
  try {
    piece.bytes = Encode();
  } catch (...) {
    piece.failure = std::current_exception();
  }
  if (piece.bytes.empty() && !piece.failure) return;
  sent_at_ = loop_.clock().IoNow();
  std::exchange(take_, nullptr)(std::move(piece));
}

std::string EventStream::Encode() {
  std::string text;
  const shared::EventView view{listener_->interest(), whole_urls_};
  while (text.size() < kPieceBytes) {
    const EventHub::Listener::Taken taken = listener_->Take(kTaken);
    if (taken.overtaken) AppendReset(text, taken.number, "slow");
    for (const EventPtr& event : taken.events) {
      JsonWriter out;
      Show(out, *event, view);
      fmt::format_to(std::back_inserter(text), "id: {}\nevent: {}\ndata: {}\n\n", hub_->IdOf(event->number),
                     kEventKindNames[static_cast<size_t>(event->kind)], out.Take());
    }
    if (taken.events.empty() && !taken.overtaken) break;
  }
  return text;
}

void EventStream::Beat() {
  if (!take_ || loop_.clock().IoNow() - sent_at_ < kBeat) return;
  sent_at_ = loop_.clock().IoNow();
  std::exchange(take_, nullptr)({.bytes = ": still here\n\n"});
}

bool EventStream::StillAllowed(const auth::TokenSet* tokens) const {
  if (tokens == nullptr) return true;
  const auth::Grant* const grant = GrantOf(*tokens, {bearer_, certificate_});
  // With other rights it would have to be another stream: the client connects again.
  return grant != nullptr && grant->scopes.Has(auth::Scope::kObserve) &&
         grant->prefix == listener_->interest().prefix && grant->scopes.Has(auth::Scope::kAdmin) == whole_urls_;
}

size_t EventStream::bytes() const {
  size_t bytes = sizeof(EventStream) + sizeof(EventHub::Listener) + bearer_.size() + certificate_.size();
  for (const std::string& topic : listener_->interest().topics) bytes += sizeof(std::string) + topic.size();
  return bytes;
}

Status ShowEvents(Call& call) {
  TOCSIN_ASSIGN(const Decoded decoded, DecodeCall(call));
  EventInterest interest;
  TOCSIN_ASSIGN(interest.kinds, ParseEventKinds(decoded.arguments.kinds));
  TOCSIN_ASSIGN(interest.topics, ParseEventTopics(decoded.arguments.topics));
  if (call.grant != nullptr) interest.prefix = call.grant->prefix;
  if (call.grant != nullptr) interest.token = call.grant->name;
  interest.node = interest.prefix.empty();
  const bool whole_urls = call.grant == nullptr || call.grant->scopes.Has(auth::Scope::kAdmin);
  const auto stream = std::make_shared<EventStream>(call.loop, call.session.Shown(), whole_urls);
  TOCSIN_TRY(stream->Open(call.context.service.events(), std::move(interest), call.session.FieldOf("Last-Event-ID")));
  call.answer.Send({.body = stream->Beginning(),
                    .content_type = "text/event-stream",
                    .fields = "Cache-Control: no-store\r\nX-Accel-Buffering: no\r\n",
                    .more_bytes = stream->bytes(),
                    .stream = stream});
  return {};
}

}  // namespace tocsin::http
