// CommandLink: the link for commands to one server. If it is connected they leave at once; otherwise they wait for a
// connection until their deadline. After a lost connection, commands that were sent are never sent again; those that
// were not keep their place in front.
//
// Owned by a client, on its thread. Each request returns to the owner exactly once: through Answered, Failed,
// TakeWaiting or Close.
#pragma once

#include <deque>

#include "clients/redis/link.h"

namespace tocsin::redis {

class CommandLink final : public Link {
 public:
  class Owner {
   public:
    /// Asks for the server's address; the answer is ConnectTo or NotFound.
    virtual void Where(CommandLink& link) = 0;
    virtual void LinkUp(CommandLink& link) = 0;
    virtual void LinkDown(CommandLink& link) = 0;
    /// The server has not answered for a while; called again while that lasts.
    virtual void LinkHangs(CommandLink& link) = 0;
    /// `current`: from the connection in use, not from one that was replaced.
    virtual void Answered(CommandLink& link, RequestPtr request, Reply reply, bool current) = 0;
    virtual void Failed(Requests requests, const Error& why) = 0;

   protected:
    ~Owner() = default;
  };

  /// `master_only`: connects only to masters.
  CommandLink(Context& context, bool master_only, Owner& owner);

  void Send(RequestPtr request);
  Requests TakeWaiting();
  /// Nothing waits and nothing is under way.
  bool idle() const { return waiting_.empty() && quiet(); }
  /// Whether anything was sent since this was last asked.
  bool TakeUsed() { return std::exchange(used_, false); }
  void Close(Requests& sent, Requests& unsent);

 private:
  void Locate() override { owner_.Where(*this); }
  void Up() override;
  void Down() override { owner_.LinkDown(*this); }
  void Hangs() override { owner_.LinkHangs(*this); }
  void Answered(RequestPtr request, Reply reply, bool current) override {
    owner_.Answered(*this, std::move(request), std::move(reply), current);
  }
  void Heard(const Reply& /*reply*/) override {}
  void Unknown(Requests requests, const Error& why) override { owner_.Failed(std::move(requests), why); }
  void GiveBack(Requests unsent) override;
  /// Takes the requests whose deadline has passed, and sets the timer for the others.
  Requests TakeLate();
  void Expire(Requests late);

  Owner& owner_;
  std::deque<RequestPtr> waiting_;
  Alarm deadline_;
  bool used_ = true;
};

}  // namespace tocsin::redis
