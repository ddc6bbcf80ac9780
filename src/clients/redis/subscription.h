// Subscription: messages of channels, on a connection of its own. What is published while it is not connected is lost:
// `back` says when the server has confirmed all channels (again).
//
// Owned by a client or a MasterFinder, on its thread. An idle connection is asked for a sign of life, so that a server
// that hangs or vanished is left within command_timeout, or two of Options::beat_min where that is longer.
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

  /// Opens the link where this is the first channel. `message` takes the place of one that the channel has.
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
  bool heard_ = false;  // anything since the last beat
  Alarm beat_;
};

}  // namespace tocsin::redis
