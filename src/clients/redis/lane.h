// Lane: the way of commands to one server. They leave at once where it is connected, and otherwise wait for a
// connection until their deadline. What was sent is never sent again after a lost connection; what was not sent stays
// in front.
//
// Owned by a client, on its thread. Each request comes back to the owner exactly once: through Answered or Failed, or
// is taken by TakeWaiting or Close.
#pragma once

#include <deque>

#include "clients/redis/link.h"

namespace tocsin::redis {

class Lane final : public Link {
 public:
  class Owner {
   public:
    /// To be answered with ConnectTo or NotFound.
    virtual void Where(Lane& lane) = 0;
    virtual void LaneUp(Lane& lane) = 0;
    virtual void LaneDown(Lane& lane) = 0;
    /// It has answered nothing for a while, though it should; again each time that this is so.
    virtual void LaneHangs(Lane& lane) = 0;
    /// `current`: of the connection in use, not of one that was replaced.
    virtual void Answered(Lane& lane, RequestPtr request, Reply reply, bool current) = 0;
    virtual void Failed(Requests requests, const Error& why) = 0;

   protected:
    ~Owner() = default;
  };

  /// `master_only`: connects to masters alone.
  Lane(Context& context, bool master_only, Owner& owner);

  void Send(RequestPtr request);
  Requests TakeWaiting();
  /// Nothing waits, nothing is under way.
  bool idle() const { return waiting_.empty() && quiet(); }
  /// Whether anything was sent since this was last asked.
  bool TakeUsed() { return std::exchange(used_, false); }
  void Close(Requests& sent, Requests& unsent);

 private:
  void Locate() override { owner_.Where(*this); }
  void Up() override;
  void Down() override { owner_.LaneDown(*this); }
  void Hangs() override { owner_.LaneHangs(*this); }
  void Answered(RequestPtr request, Reply reply, bool current) override {
    owner_.Answered(*this, std::move(request), std::move(reply), current);
  }
  void Heard(const Reply& /*reply*/) override {}
  void Unknown(Requests requests, const Error& why) override { owner_.Failed(std::move(requests), why); }
  void GiveBack(Requests unsent) override;
  /// Takes those whose deadline has passed, and watches that of the others.
  Requests TakeLate();
  void Expire(Requests late);

  Owner& owner_;
  std::deque<RequestPtr> waiting_;
  Alarm deadline_;
  bool used_ = true;
};

}  // namespace tocsin::redis
