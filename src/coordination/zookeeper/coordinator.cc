#include "coordination/zookeeper/coordinator.h"

#include <algorithm>
#include <ranges>

#include "base/log.h"

namespace tocsin {

using zookeeper::Answer;
using zookeeper::Event;
using zookeeper::Outcome;
using zookeeper::Session;

namespace {

/// Between two tries of what ZooKeeper refused. Waiting alone seldom helps.
constexpr Millis kRetry{1'000};

Status CheckPath(const std::string& path) {
  const auto bad = [&path](std::string_view why) {
    return FailField(Code::kInvalidArgument, "path", "\"{}\" {}, as in /tocsin or /shared/tocsin", path, why);
  };
  if (!path.starts_with('/')) return bad("does not begin with /");
  if (path.size() == 1) return {};
  for (const auto part : std::views::split(std::string_view(path).substr(1), '/')) {
    const std::string_view name(part.begin(), part.end());
    if (name.empty()) return bad("has an empty part");
    if (name == "." || name == "..") return bad("has a part . or ..");
    if (std::ranges::any_of(name, [](unsigned char c) { return c < 0x20 || c >= 0x7F; })) {
      return bad("has bytes that are not printable ASCII");
    }
  }
  return {};
}

Status CheckOptions(const ZookeeperOptions& options) {
  if (options.hosts.empty()) return FailField(Code::kInvalidArgument, "hosts", "no host:port of a ZooKeeper is given");
  if (options.hosts.contains('/')) {
    return FailField(Code::kInvalidArgument, "hosts", "\"{}\" has a path: give it as the path", options.hosts);
  }
  TOCSIN_TRY(CheckSession(options.session, ZookeeperCoordinator::kSessionMin, ZookeeperCoordinator::kSessionMax));
  if (options.username.empty() != options.password.empty()) {
    return FailField(Code::kInvalidArgument, options.username.empty() ? "username" : "password",
                     "a user name and a password are given together, or neither");
  }
  if (options.username.contains(':')) {
    return FailField(Code::kInvalidArgument, "username", "a user name of ZooKeeper has no ':'");
  }
  return CheckPath(options.path);
}

}  // namespace

Result<std::unique_ptr<ZookeeperCoordinator>> ZookeeperCoordinator::Make(Loop& loop, boost::asio::io_context& io,
                                                                         const Clock& clock, ZookeeperOptions options) {
  TOCSIN_TRY(CheckOptions(options));
  return std::unique_ptr<ZookeeperCoordinator>(new ZookeeperCoordinator(loop, io, clock, std::move(options)));
}

ZookeeperCoordinator::ZookeeperCoordinator(Loop& loop, boost::asio::io_context& io, const Clock& clock,
                                           ZookeeperOptions options)
    : LeasedCoordinator(io, clock, "zookeeper", "ZooKeeper has not answered for a whole session"),
      loop_(loop),
      options_(std::move(options)),
      folder_((options_.path == "/" ? "" : options_.path) + "/members"),
      roster_(folder_) {}

void ZookeeperCoordinator::Join(Member self, std::move_only_function<void(const Members&)> changed) {
  BeginJoin(std::move(self), std::move(changed));
  node_ = folder_ + "/" + zookeeper::NodeName(self_.id);
  OpenSession();
}

void ZookeeperCoordinator::OpenSession() {
  next_ = TimePoint::max();
  zookeeper::SessionOptions options{.hosts = options_.hosts, .timeout = options_.session};
  if (!options_.username.empty()) options.credentials = options_.username + ":" + options_.password;
  session_ = Session::Open(loop_, worker_, std::move(options),
                           [this](Event event, std::string why) { OnEvent(event, std::move(why)); });
}

void ZookeeperCoordinator::OnEvent(Event event, std::string why) {
  CheckLease();
  if (left_) return;
  switch (event) {
    case Event::kConnected:
      if (session_->timeout() != options_.session) {
        LogInfo("coordinator: ZooKeeper grants a session of {} ms", session_->timeout().count());
      }
      SetState(true, "connected");
      if (!registered_) return Register();
      Look();
      Read();
      break;
    case Event::kDisconnected:
      SetState(false, std::move(why));
      break;
    case Event::kExpired:
      return DropSession(std::move(why), Millis(0));
    case Event::kRefused:
      return DropSession(std::move(why), kRetry);
    case Event::kChildren:
      Read();
      break;
  }
}

void ZookeeperCoordinator::DropSession(std::string why, Millis wait) {
  SetState(false, why);
  session_.reset();
  roster_.Reset();
  registered_ = registering_ = looking_ = read_again_ = false;
  refresh_ = std::exchange(refreshing_, false) || refresh_;
  next_ = clock_.IoNow() + wait;
  if (view_.joined) Lose(why);
  if (!left_) Arm();
}

void ZookeeperCoordinator::Register() {
  if (registering_) return;
  registering_ = true;
  next_ = TimePoint::max();
  self_.joined = clock_.Now().utc;
  session_->Create(node_, EncodeMember(self_), true, [this, sent = clock_.IoNow()](Answer answer) {
    if (!left_) OnCreated(sent, std::move(answer));
  });
}

void ZookeeperCoordinator::OnCreated(TimePoint sent, Answer answer) {
  switch (answer.outcome) {
    case Outcome::kOk:
      return Registered(sent);
    case Outcome::kNoNode:
      return CreateParents(0);
    case Outcome::kExists:
      return OnExisting(sent);
    case Outcome::kLost:
      registering_ = false;  // tries again once there is a connection
      return;
    case Outcome::kFailed:
      return RegisterLater(answer.why);
  }
}

void ZookeeperCoordinator::CreateParents(size_t depth) {
  const size_t end = folder_.find('/', depth + 1);
  session_->Create(folder_.substr(0, end), {}, false, [this, end](const Answer& answer) {
    if (left_) return;
    if (answer.outcome == Outcome::kLost) {
      registering_ = false;
    } else if (answer.outcome != Outcome::kOk && answer.outcome != Outcome::kExists) {
      RegisterLater(answer.why);
    } else if (end != std::string::npos) {
      CreateParents(end);
    } else {
      registering_ = false;
      Register();
    }
  });
}

void ZookeeperCoordinator::OnExisting(TimePoint sent) {
  session_->Look(node_, [this, sent](const Answer& answer) {
    if (left_) return;
    if (answer.outcome == Outcome::kOk && answer.ours) return Registered(sent);
    if (answer.outcome == Outcome::kLost || answer.outcome == Outcome::kNoNode) {
      registering_ = false;
      if (answer.outcome == Outcome::kNoNode) Register();
      return;
    }
    if (answer.outcome == Outcome::kFailed) return RegisterLater(answer.why);
    // It belongs to a session of ours that has not expired yet and would take the node with it.
    session_->Delete(node_, [this](const Answer& deleted) {
      if (left_) return;
      if (deleted.outcome == Outcome::kFailed) return RegisterLater(deleted.why);
      registering_ = false;
      if (deleted.outcome != Outcome::kLost) Register();
    });
  });
}

void ZookeeperCoordinator::RegisterLater(const std::string& why) {
  registering_ = false;
  SetState(connected_, fmt::format("ZooKeeper refuses {}: {}", node_, why));
  next_ = clock_.IoNow() + kRetry;
  Arm();
}

void ZookeeperCoordinator::Registered(TimePoint sent) {
  registering_ = false;
  registered_ = true;
  SetState(true, "connected");
  lease_end_ = sent + session_->timeout();
  next_ = sent + session_->timeout() / 3;
  Arm();
  Read();
}

void ZookeeperCoordinator::Look() {
  if (looking_) return;
  looking_ = true;
  next_ = TimePoint::max();
  session_->Look(node_, [this, sent = clock_.IoNow()](const Answer& answer) {
    looking_ = false;
    CheckLease();
    if (left_ || answer.outcome == Outcome::kLost) return;
    next_ = sent + session_->timeout() / 3;
    if (answer.outcome == Outcome::kOk && answer.ours) {
      lease_end_ = std::max(lease_end_, sent + session_->timeout());
      const Time now = clock_.Now().utc;  // ZooKeeper answers for all of them
      for (Member& member : view_.members) member.heard = now;
      if (!view_.joined || read_again_) Read();
    } else if (answer.outcome == Outcome::kFailed) {
      SetState(connected_, answer.why);
    } else {
      registered_ = false;
      if (view_.joined) Lose("somebody has removed its node from ZooKeeper");
      if (left_) return;
      Register();
    }
    Arm();
  });
}

void ZookeeperCoordinator::Read() {
  if (!registered_) return;  // reads once this node is registered
  if (roster_.reading()) {
    read_again_ = true;
    return;
  }
  read_again_ = false;
  refreshing_ = std::exchange(refresh_, false) || refreshing_;
  roster_.Read(*session_, [this](const Answer& answer, std::vector<Member> members) {
    CheckLease();
    if (!left_) OnMembers(answer, std::move(members));
  });
}

void ZookeeperCoordinator::OnMembers(const Answer& answer, std::vector<Member> members) {
  const bool refreshing = std::exchange(refreshing_, false);
  const bool ours = std::ranges::binary_search(members, self_.id, {}, &Member::id);
  if (answer.outcome == Outcome::kOk && ours && registered_) {
    const Time now = clock_.Now().utc;
    for (Member& member : members) member.heard = now;
    if (Adopt(std::move(members), clock_.IoNow() < lease_end_) || refreshing) Report();
    if (!left_ && read_again_) Read();
    return Arm();
  }
  read_again_ = answer.outcome != Outcome::kLost;
  if (answer.outcome == Outcome::kFailed) {
    SetState(connected_, fmt::format("ZooKeeper refuses to list {}: {}", folder_, answer.why));
    next_ = clock_.IoNow() + kRetry;
    Arm();
  } else if (answer.outcome != Outcome::kLost) {  // our node, or all of them, seem to be gone
    Look();
  }
  if (refreshing) Report();
}

void ZookeeperCoordinator::Refresh() {
  if (left_ || self_.id.empty()) return;
  refresh_ = true;
  if (!connected_ || !registered_) {
    loop_.Post([this, alive = std::weak_ptr(alive_)] {
      if (!alive.expired() && std::exchange(refresh_, false)) Report();
    });
    return;
  }
  session_->Sync(folder_, [this](const Answer& answer) {
    if (left_) return;
    if (answer.outcome != Outcome::kLost) return Read();
    if (std::exchange(refresh_, false)) Report();
  });
}

void ZookeeperCoordinator::OnTimer() {
  CheckLease();
  if (left_) return;
  if (clock_.IoNow() >= next_) {
    next_ = TimePoint::max();
    if (session_ == nullptr) {
      OpenSession();
    } else if (connected_) {
      registered_ ? Look() : Register();
    }
  }
  Arm();
}

void ZookeeperCoordinator::SetState(bool connected, std::string state) {
  if (state != state_) Log(connected ? LogLevel::kInfo : LogLevel::kWarn, "coordinator: ZooKeeper: {}", state);
  connected_ = connected;
  state_ = std::move(state);
}

void ZookeeperCoordinator::Leave(Done<void> done) {
  BeginLeave(std::move(done));
  if (session_ == nullptr || !connected_) {
    const bool known = registered_ || registering_;
    return EndLeave(known ? Status(Fail(Code::kUnavailable, "ZooKeeper is not reached: the session runs out by itself"))
                          : Status());
  }
  session_->Delete(node_, [this](const Answer& answer) {
    const bool gone = answer.outcome == Outcome::kOk || answer.outcome == Outcome::kNoNode;
    EndLeave(gone ? Status() : Status(Fail(Code::kUnavailable, "ZooKeeper did not delete {}: {}", node_, answer.why)));
  });
}

void ZookeeperCoordinator::EndLeave(Status status) {
  Task closed = [this, alive = std::weak_ptr(alive_), status = std::move(status)]() mutable {
    if (!alive.expired()) leave_done_(std::move(status));
  };
  if (session_ == nullptr) return loop_.Post(std::move(closed));
  session_->Close(std::move(closed));
  session_.reset();
}

}  // namespace tocsin
