// EventStream: the answer to GET /v1/events: server-sent events from the hub (core/events.h), without an end. A piece
// of the answer is made when the one before is sent: a client that is slow has a place in the hub, and no queue.
//
// Owned by its session, on whose loop everything runs. It holds the caller's credential: when the access
// tokens change, the session asks whether it still counts.
#pragma once

#include <memory>
#include <string>

#include "core/events.h"
#include "frontend/http/session.h"

namespace tocsin::http {

class EventStream final : public Stream, public std::enable_shared_from_this<EventStream> {
 public:
  static constexpr Millis kBeat{15'000};
  static constexpr size_t kTopicsMax = 100;

  /// `caller`: whose stream it is.
  EventStream(net::AsioLoop& loop, Credentials caller, bool whole_urls)
      : loop_(loop),
        bearer_(std::move(caller.authorization)),
        certificate_(caller.certificate),
        whole_urls_(whole_urls) {}

  /// Once, before anything else.
  Status Open(EventHub& hub, EventInterest interest, std::string_view last_id);

  /// What comes first.
  std::string Beginning() const;
  void Next(TakePiece take) override;
  void Beat() override;
  bool StillAllowed(const auth::TokenSet* tokens) const override;
  size_t bytes() const;

 private:
  /// Hands out a piece, if the session waits for one and there is something to tell.
  void Give();
  std::string Encode();
  void AppendReset(std::string& out, uint64_t number, std::string_view reason) const;

  net::AsioLoop& loop_;
  const std::string bearer_;
  const std::string certificate_;
  const bool whole_urls_;
  EventHub* hub_ = nullptr;
  std::unique_ptr<EventHub::Listener> listener_;
  TakePiece take_;  // the session waits for a piece
  IoTime sent_at_{};
};

/// Of the query: names with commas between them.
Result<uint32_t> ParseEventKinds(std::string_view text);
Result<std::vector<std::string>> ParseEventTopics(std::string_view text);

Status ShowEvents(Call& call);

}  // namespace tocsin::http
