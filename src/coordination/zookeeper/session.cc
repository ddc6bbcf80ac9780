#include "coordination/zookeeper/session.h"

#include <cerrno>
#include <cstring>
#include <mutex>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <zookeeper/zookeeper.h>

#include "base/log.h"
#include "base/result.h"

namespace tocsin::zookeeper {
namespace {

Answer ToAnswer(int code) {
  if (code == ZOK) return {.outcome = Outcome::kOk};
  Answer answer{.outcome = Outcome::kFailed, .why = zerror(code)};
  if (code == ZNONODE) answer.outcome = Outcome::kNoNode;
  if (code == ZNODEEXISTS) answer.outcome = Outcome::kExists;
  const bool lost = code == ZCONNECTIONLOSS || code == ZOPERATIONTIMEOUT || code == ZSESSIONEXPIRED ||
                    code == ZSESSIONMOVED || code == ZCLOSING || code == ZINVALIDSTATE;
  if (lost) answer.outcome = Outcome::kLost;
  return answer;
}

void LogLine(const char* message) { LogDebug("zookeeper: {}", message); }

/// Errors alone: for its other lines the library formats addresses into a buffer that all of its sessions share.
void QuietenLibrary() {
  static std::once_flag once;
  std::call_once(once, [] { zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR); });
}

}  // namespace

struct Session::Request {
  Native* native;
  OnAnswer answer;
};

// What the threads of the library see. It lives until the library's handle is closed, on the worker; requests that the
// library never answers, because it was closed, end with it.
struct Session::Native {
  Loop* loop = nullptr;
  std::weak_ptr<Session> session;
  zhandle_t* handle = nullptr;  // written by the worker, read by the loop after Opened
  std::string refused;          // why there is none; likewise

  std::mutex mutex;  // guards requests
  std::unordered_map<const Request*, std::unique_ptr<Request>> requests;

  ~Native() {
    if (handle != nullptr) zookeeper_close(handle);
  }

  std::unique_ptr<Request> Take(const void* request) {
    const std::lock_guard lock(mutex);
    auto node = requests.extract(static_cast<const Request*>(request));
    TOCSIN_CHECK(!node.empty());
    return std::move(node.mapped());
  }

  /// The end of a request, on any thread.
  static void Finish(const void* raw, Answer answer) {
    Native* native = static_cast<const Request*>(raw)->native;
    native->loop->Post([to = native->session, request = native->Take(raw), answer = std::move(answer)]() mutable {
      if (const std::shared_ptr<Session> held = to.lock()) request->answer(std::move(answer));
    });
  }

  static void OnVoid(int code, const void* request) { Finish(request, ToAnswer(code)); }
  static void OnText(int code, const char*, const void* request) { Finish(request, ToAnswer(code)); }
  static void OnStat(int code, const Stat* stat, const void* request) {
    Answer answer = ToAnswer(code);
    const auto* id = zoo_client_id(static_cast<const Request*>(request)->native->handle);
    answer.ours = code == ZOK && stat->ephemeralOwner == id->client_id;
    Finish(request, std::move(answer));
  }
  static void OnData(int code, const char* value, int size, const Stat*, const void* request) {
    Answer answer = ToAnswer(code);
    if (code == ZOK && size > 0) answer.data.assign(value, static_cast<size_t>(size));
    Finish(request, std::move(answer));
  }
  static void OnNames(int code, const String_vector* names, const void* request) {
    Answer answer = ToAnswer(code);
    if (code == ZOK) answer.names.assign(names->data, names->data + names->count);
    Finish(request, std::move(answer));
  }

  static void OnWatch(zhandle_t* zh, int type, int state, const char*, void* context) {
    auto* native = static_cast<Native*>(context);
    if (type == ZOO_CHILD_EVENT || type == ZOO_DELETED_EVENT) return native->Tell(Event::kChildren, {});
    if (type != ZOO_SESSION_EVENT) return;
    if (state == ZOO_CONNECTED_STATE) return native->Tell(Event::kConnected, {}, Millis(zoo_recv_timeout(zh)));
    if (state == ZOO_EXPIRED_SESSION_STATE) return native->Tell(Event::kExpired, "its session has expired");
    if (state == ZOO_AUTH_FAILED_STATE) return native->Tell(Event::kRefused, "ZooKeeper refuses the credentials");
    native->Tell(Event::kDisconnected, "the connection to ZooKeeper is lost");
  }

  void Tell(Event event, std::string why, Millis timeout = {}) {
    loop->Post([to = session, event, why = std::move(why), timeout]() mutable {
      if (const std::shared_ptr<Session> held = to.lock()) held->Arrive(event, std::move(why), timeout);
    });
  }
};

std::shared_ptr<Session> Session::Open(Loop& loop, Worker& worker, SessionOptions options, OnEvent on_event) {
  std::shared_ptr<Session> session(new Session(loop, worker, std::move(options), std::move(on_event)));
  session->Begin();
  return session;
}

Session::Session(Loop& loop, Worker& worker, SessionOptions options, OnEvent on_event)
    : loop_(loop),
      worker_(worker),
      options_(std::move(options)),
      on_event_(std::move(on_event)),
      native_(std::make_shared<Native>()) {}

Session::~Session() {
  if (native_ != nullptr) worker_.Run([native = std::move(native_)]() mutable { native.reset(); });
}

void Session::Close(Task closed) {
  worker_.Run([loop = &loop_, native = std::move(native_), closed = std::move(closed)]() mutable {
    native.reset();
    loop->Post(std::move(closed));
  });
}

void Session::Begin() {
  native_->loop = &loop_;
  native_->session = weak_from_this();
  worker_.Run([native = native_, options = options_] {
    QuietenLibrary();
    native->handle = zookeeper_init2(options.hosts.c_str(), &Native::OnWatch, static_cast<int>(options.timeout.count()),
                                     nullptr, native.get(), 0, &LogLine);
    if (native->handle == nullptr) {
      native->refused = fmt::format("no session with ZooKeeper at {}: {}", options.hosts, strerror(errno));
    } else if (!options.credentials.empty()) {
      zoo_add_auth(native->handle, "digest", options.credentials.data(), static_cast<int>(options.credentials.size()),
                   nullptr, nullptr);
    }
    native->loop->Post([to = native->session] {
      if (const std::shared_ptr<Session> held = to.lock()) held->Opened();
    });
  });
}

void Session::Opened() {
  opened_ = true;
  if (native_->handle == nullptr) return on_event_(Event::kRefused, native_->refused);
  if (early_) on_event_(*early_, {});
}

void Session::Arrive(Event event, std::string why, Millis timeout) {
  if (event == Event::kConnected) timeout_ = timeout;
  if (!opened_) {
    early_ = event;
    return;
  }
  on_event_(event, std::move(why));
}

Session::Request* Session::Ask(OnAnswer answer) {
  auto request = std::make_unique<Request>(native_.get(), std::move(answer));
  Request* raw = request.get();
  const std::lock_guard lock(native_->mutex);
  native_->requests.emplace(raw, std::move(request));
  return raw;
}

void Session::Asked(Request* request, int code) {
  if (code != ZOK) Native::Finish(request, ToAnswer(code));
}

void Session::Create(const std::string& path, std::string_view data, bool ephemeral, OnAnswer answer) {
  Request* request = Ask(std::move(answer));
  const ACL_vector* who = options_.credentials.empty() ? &ZOO_OPEN_ACL_UNSAFE : &ZOO_CREATOR_ALL_ACL;
  Asked(request, zoo_acreate(native_->handle, path.c_str(), data.data(), static_cast<int>(data.size()), who,
                             ephemeral ? ZOO_EPHEMERAL : 0, &Native::OnText, request));
}

void Session::Delete(const std::string& path, OnAnswer answer) {
  Request* request = Ask(std::move(answer));
  Asked(request, zoo_adelete(native_->handle, path.c_str(), -1, &Native::OnVoid, request));
}

void Session::Look(const std::string& path, OnAnswer answer) {
  Request* request = Ask(std::move(answer));
  Asked(request, zoo_aexists(native_->handle, path.c_str(), 0, &Native::OnStat, request));
}

void Session::Get(const std::string& path, OnAnswer answer) {
  Request* request = Ask(std::move(answer));
  Asked(request, zoo_aget(native_->handle, path.c_str(), 0, &Native::OnData, request));
}

void Session::Children(const std::string& path, OnAnswer answer) {
  Request* request = Ask(std::move(answer));
  Asked(request, zoo_aget_children(native_->handle, path.c_str(), 1, &Native::OnNames, request));
}

void Session::Sync(const std::string& path, OnAnswer answer) {
  Request* request = Ask(std::move(answer));
  Asked(request, zoo_async(native_->handle, path.c_str(), &Native::OnText, request));
}

}  // namespace tocsin::zookeeper
