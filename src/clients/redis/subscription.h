// Subscription: the link for messages of channels. Messages that are published while it is not connected are lost:
// `back` is called whenever the server has confirmed all channels.
//
// Owned by a client or a MasterFinder, on its thread. It pings an idle connection, and so leaves a server that hangs or
// vanished within command_timeout, or twice Options::beat_min if that is longer.
#pragma once

#include <map>
#include <string>

#include "clients/redis/link.h"

namespace tocsin::redis {

class Subscription final : public Link {
 public:
  struct Hooks {
    /// To be answered with ConnectTo or NotFound.
    std::move_only_function<void(Link&)> where;
    std::move_only_function<void()> back;
  };

  Subscription(Context& context, Login login, Hooks hooks);

  /// Opens the link if this is the first channel. Replaces the handler of a channel that has one.
  void Add(std::string channel, Client::Message message);

 private:
  void Locate() override { hooks_.where(*this); }
  void Up() override;
  void Down() override {}
  void Answered(RequestPtr /*request*/, Reply /*reply*/, bool /*current*/) override {}
  void Heard(const Reply& reply) override;
  void Unknown(Requests /*requests*/, const Error& /*why*/) override {}
  void GiveBack(Requests /*unsent*/) override {}
  void Confirmed();
  void Beat();

  Hooks hooks_;
  std::map<std::string, Client::Message, std::less<>> channels_;
  size_t awaited_ = 0;  // confirmations
  bool heard_ = false;  // anything arrived since the last ping
  Alarm beat_;
};

}  // namespace tocsin::redis
