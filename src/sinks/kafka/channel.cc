#include "sinks/kafka/channel.h"

#include "sinks/kafka/sink.h"

namespace tocsin::kafka {

void Channel::Flush() {
  Post([self = shared_from_this(), reports = std::exchange(round_, {})]() mutable {
    if (self->sink_ != nullptr) self->sink_->OnReports(std::move(reports));
  });
}

void Channel::Wake() {
  Post([self = shared_from_this()] {
    if (self->sink_ != nullptr) self->sink_->OnWake();
  });
}

void Channel::Detach() {
  sink_ = nullptr;
  const std::lock_guard lock(mutex_);
  loop_ = nullptr;
}

void Channel::Post(Task task) {
  const std::lock_guard lock(mutex_);  // held while posting: the loop may end once Detach has returned
  if (loop_ != nullptr) loop_->Post(std::move(task));
}

}  // namespace tocsin::kafka
