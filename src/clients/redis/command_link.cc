#include "clients/redis/command_link.h"

namespace tocsin::redis {

CommandLink::CommandLink(Context& context, bool master_only, Owner& owner)
    : Link(context, {.login = {context.options.username, context.options.password}, .master_only = master_only}),
      owner_(owner),
      deadline_(context.io, [this] { Expire(TakeLate()); }) {}

void CommandLink::Send(RequestPtr request) {
  used_ = true;
  if (up()) return connection().Send(std::move(request));
  deadline_.SetEarlier(request->deadline);
  waiting_.push_back(std::move(request));
}

void CommandLink::Up() {
  Requests late = TakeLate();
  for (RequestPtr& request : waiting_) connection().Send(std::move(request));
  waiting_.clear();
  owner_.LinkUp(*this);
  // Last, because the callers may do anything, such as close the client.
  Expire(std::move(late));
}

void CommandLink::GiveBack(Requests unsent) {
  for (RequestPtr& request : unsent) deadline_.SetEarlier(request->deadline);
  waiting_.insert(waiting_.begin(), std::make_move_iterator(unsent.begin()), std::make_move_iterator(unsent.end()));
}

Requests CommandLink::TakeLate() {
  const TimePoint now = std::chrono::steady_clock::now();
  Requests late;
  TimePoint next = TimePoint::max();
  for (RequestPtr& request : waiting_) {
    if (request->deadline <= now) {
      late.push_back(std::move(request));
    } else {
      next = std::min(next, request->deadline);
    }
  }
  std::erase(waiting_, nullptr);
  deadline_.Set(next);
  return late;
}

void CommandLink::Expire(Requests late) {
  if (late.empty()) return;
  const std::string why =
      trouble().empty() ? fmt::format("there is no connection to Redis at {} yet", endpoint().Text()) : trouble();
  owner_.Failed(std::move(late), Error{Code::kUnavailable, fmt::format("not sent: {}", why), {}});
}

Requests CommandLink::TakeWaiting() {
  Requests taken(std::make_move_iterator(waiting_.begin()), std::make_move_iterator(waiting_.end()));
  waiting_.clear();
  return taken;
}

void CommandLink::Close(Requests& sent, Requests& unsent) {
  Link::Close(sent, unsent);
  for (RequestPtr& request : waiting_) unsent.push_back(std::move(request));
  waiting_.clear();
  deadline_.Cancel();
}

}  // namespace tocsin::redis
