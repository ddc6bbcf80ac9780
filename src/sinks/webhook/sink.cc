#include "sinks/webhook/sink.h"

#include <algorithm>

#include "base/log.h"
#include "base/result.h"
#include "net/turns.h"
#include "sinks/webhook/batch.h"

namespace tocsin::webhook {
namespace {

constexpr auto kIdleMax = std::chrono::seconds(30);
constexpr auto kAgeMax = std::chrono::seconds(60);     // then another connection looks the name up again
constexpr auto kCloseTime = std::chrono::seconds(2);   // for requests under way when the sink is closed
constexpr auto kSecretAge = std::chrono::seconds(10);  // how long a replaced secret is still used
constexpr auto kPlaceAgainAfter = std::chrono::milliseconds(100);
constexpr auto kTellOfPlacesEvery = std::chrono::minutes(1);
constexpr size_t kHeadBytes = 1024;
constexpr const char* kNotSent = "the topic's delivery was stopped before it was sent";
constexpr std::string_view kStopped = "the topic's delivery was stopped before the receiver answered";

/// Receivers compare it with their own clocks, so it is the machine's, also if the server's clock is virtual.
int64_t WallSeconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::vector<const JobView*> JobsOf(const Request& request) {
  std::vector<const JobView*> jobs;
  jobs.reserve(request.items.size());
  for (const Item& item : request.items) jobs.push_back(&item.job());
  return jobs;
}

}  // namespace

WebhookSink::WebhookSink(Route route, MessageWriter writer, SinkSettings settings, ReadSigner read_signer)
    : route_(std::move(route)),
      writer_(std::move(writer)),
      settings_(std::move(settings)),
      read_signer_(std::move(read_signer)),
      renew_signer_at_(Now() + kSecretAge),
      timer_(route_.loop.io()) {}

WebhookSink::~WebhookSink() {
  for (const auto& connection : connections_) connection->Close();
}

void WebhookSink::Deliver(std::shared_ptr<const JobBatch> batch, Answer answer) {
  const size_t count = batch->jobs.size();
  const auto handover = std::make_shared<Handover>(std::move(batch), std::move(answer));
  if (closing_) {
    for (size_t i = 0; i < count; ++i) handover->answer(i, Unsent(kNotSent));
    return;
  }
  for (size_t i = 0; i < count; ++i) waiting_.push_back({handover, i});
  Pump();
}

void WebhookSink::Pump() {
  while (!waiting_.empty() && busy_ < settings_.in_flight) {
    std::shared_ptr<Connection> connection = TakeIdle();
    if (connection == nullptr) {
      net::Places::Place place = route_.places.Take(connections_.size());
      if (!place) return AwaitPlace();
      connection = AddConnection(std::move(place));
    }
    ++busy_;
    connection->Send(NextRequest());
    SetAlarm(connection->deadline());
  }
}

std::shared_ptr<const Request> WebhookSink::NextRequest() {
  auto made = std::make_shared<Request>();
  Request& request = *made;
  RenewSigner();
  request.deadline = Now() + settings_.timeout;
  request.head.reserve(kHeadBytes);
  request.batched = settings_.batch > 1;
  size_t bytes = 0;
  do {
    request.items.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
    bytes += BatchBytes(request.items.back().job());
  } while (request.items.size() < settings_.batch && !waiting_.empty() &&
           bytes + BatchBytes(waiting_.front().job()) <= kBatchBytesMax);
  if (request.batched) {
    writer_.WriteBatch(request.head, request.list, JobsOf(request), WallSeconds());
  } else {
    writer_.WriteHead(request.head, request.items.front().job(), WallSeconds());
  }
  return made;
}

void WebhookSink::RenewSigner() {
  if (read_signer_ == nullptr || Now() < renew_signer_at_) return;
  renew_signer_at_ = Now() + kSecretAge;
  auto signer = read_signer_();
  if (signer) return writer_.SetSigner(*std::move(signer));
  LogWarn("webhooks to {} are still signed with the old secret: {}", route_.target.Text(), signer.error().message);
}

std::shared_ptr<Connection> WebhookSink::TakeIdle() {
  if (idle_.empty()) return nullptr;
  if (idle_.back()->idle_since + kIdleMax <= Now()) {  // then so are the others
    CloseIdle();
    return nullptr;
  }
  std::shared_ptr<Connection> connection = std::move(idle_.back());
  idle_.pop_back();
  return connection;
}

std::shared_ptr<Connection> WebhookSink::AddConnection(net::Places::Place place) {
  auto connection = std::make_shared<Connection>(route_, *this, std::move(place));
  connection->place = connections_.size();
  connection->made_at = Now();
  connections_.push_back(connection);
  return connection;
}

void WebhookSink::AwaitPlace() {
  SetAlarm(Now() + kPlaceAgainAfter);
  if (Now() < tell_of_places_at_) return;
  tell_of_places_at_ = Now() + kTellOfPlacesEvery;
  LogWarn("webhooks to {} wait: it has {} connections open, and all receivers may have {} together (open files)",
          route_.target.Text(), connections_.size(), route_.places.max());
}

void WebhookSink::Remove(Connection& connection) {
  connection.Close();
  const size_t place = connection.place;
  std::swap(connections_[place], connections_.back());
  connections_[place]->place = place;
  connections_.pop_back();
}

void WebhookSink::CloseIdle() {
  for (const auto& connection : idle_) Remove(*connection);
  idle_.clear();
}

void WebhookSink::OnLost(Connection& connection) {
  std::erase_if(idle_, [&](const auto& one) { return one.get() == &connection; });
  Remove(connection);
}

void WebhookSink::OnEnded(Connection& connection, const Connection::Ending& ending) {
  const std::shared_ptr<Connection> kept = connections_[connection.place];
  --busy_;
  const std::shared_ptr<const Request> request = connection.TakeRequest();
  if (ending.stale && !request->again) {
    net::Places::Place place = connection.TakeSocketPlace();
    Remove(connection);
    return SendAgain(*request, std::move(place));
  }
  if (ending.no_file && !request->again) {
    Remove(connection);
    return PutBack(*request);
  }
  std::vector<Delivered> outcomes = OutcomesOf(*request, ending);
  const bool old = connection.made_at + kAgeMax <= Now() && !route_.target.address;
  if (ending.reusable && !old && !closing_ && !route_.places.scarce()) {
    connection.idle_since = Now();
    idle_.push_back(kept);
    SetAlarm(connection.idle_since + kIdleMax);
  } else {
    Remove(connection);
  }
  for (size_t i = 0; i < outcomes.size(); ++i) {
    request->items[i].handover->answer(request->items[i].index, std::move(outcomes[i]));
  }
  Pump();
  CheckClosed();
}

void WebhookSink::PutBack(const Request& request) {
  if (closing_) {
    for (const Item& item : request.items) item.handover->answer(item.index, Unsent(kNotSent));
    return CheckClosed();
  }
  waiting_.insert(waiting_.begin(), request.items.begin(), request.items.end());
  AwaitPlace();
}

void WebhookSink::SendAgain(const Request& request, net::Places::Place place) {
  auto again = std::make_shared<Request>(request);
  again->again = true;
  ++busy_;
  const std::shared_ptr<Connection> connection = AddConnection(std::move(place));
  connection->Send(std::move(again));
  SetAlarm(connection->deadline());
}

std::vector<Delivered> WebhookSink::OutcomesOf(const Request& request, const Connection::Ending& ending) const {
  const size_t count = request.items.size();
  // One that is sent a second time may have arrived the first time.
  const bool unsent = ending.unsent && !request.again;
  if (!ending.answer) return std::vector<Delivered>(count, unsent ? Unsent(ending.error) : Retry(ending.error));
  const std::chrono::sys_seconds now{std::chrono::seconds(WallSeconds())};
  const Delivered verdict = VerdictOf(*ending.answer, settings_.final_statuses, now);
  if (!request.batched || verdict.outcome != DeliverOutcome::kConfirmed) {
    return std::vector<Delivered>(count, verdict);
  }
  if (ending.answer->whole) return ReadOutcomes(ending.answer->body, JobsOf(request));
  return std::vector<Delivered>(count, Retry("the receiver's list of outcomes is too long or incomplete"));
}

void WebhookSink::Close(Task done) {
  TOCSIN_CHECK(!closing_);
  closing_ = true;
  closed_ = std::move(done);
  CloseIdle();
  close_by_ = Now() + kCloseTime;
  SetAlarm(close_by_);
  for (const Item& item : std::exchange(waiting_, {})) item.handover->answer(item.index, Unsent(kNotSent));
  CheckClosed();
}

void WebhookSink::CheckClosed() {
  if (!closing_ || busy_ > 0 || !closed_) return;
  timer_.cancel();
  route_.loop.Post(std::exchange(closed_, nullptr));
}

void WebhookSink::SetAlarm(TimePoint at) {
  if (at >= alarm_at_) return;  // Expire looks at everything, and sets the alarm again
  alarm_at_ = at;
  timer_.expires_after(at - Now());
  timer_.async_wait([this, alive = std::weak_ptr(alive_)](const boost::system::error_code& error) {
    if (error || alive.expired()) return;
    const net::Turn turn;
    alarm_at_ = TimePoint::max();
    Expire();
  });
}

void WebhookSink::Expire() {
  const TimePoint now = Now();
  ExpireBusy(now);
  // The one that was used longest ago is first.
  const auto old = [now](const auto& one) { return one->idle_since + kIdleMax <= now; };
  const auto kept = std::ranges::find_if_not(idle_, old);
  const std::vector<std::shared_ptr<Connection>> gone(idle_.begin(), kept);
  idle_.erase(idle_.begin(), kept);
  for (const auto& connection : gone) Remove(*connection);
  Pump();  // there may be a place for another socket now

  TimePoint next = idle_.empty() ? TimePoint::max() : idle_.front()->idle_since + kIdleMax;
  for (const auto& connection : connections_) {
    if (connection->busy()) next = std::min(next, std::min(connection->deadline(), close_by_));
  }
  if (next != TimePoint::max()) SetAlarm(next);
}

void WebhookSink::ExpireBusy(TimePoint now) {
  std::vector<std::shared_ptr<Connection>> late;
  for (const auto& connection : connections_) {
    if (connection->busy() && std::min(connection->deadline(), close_by_) <= now) late.push_back(connection);
  }
  for (const auto& connection : late) {
    if (!connection->busy()) continue;
    connection->deadline() <= now ? connection->Expire() : connection->Abandon(kStopped);
  }
}

}  // namespace tocsin::webhook
