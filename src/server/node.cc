#include "server/node.h"

#include <csignal>
#include <cstdlib>
#include <random>

#include <pthread.h>

#include "base/comma_list.h"
#include "base/episode.h"
#include "base/log.h"
#include "base/version.h"
#include "config/docs.h"
#include "config/start_time.h"
#include "frontend/http/ui.h"
#include "net/turns.h"
#include "server/log_events.h"
#include "server/memory_plan.h"
#include "server/node_figures.h"
#include "server/options.h"

namespace tocsin {
namespace {

constexpr Millis kStopTime{10'000};  // for requests under way when the server is told to stop

/// How much of memory_limit jobs on their way to receivers may take: what stored jobs leave of it, and 32 MiB at least.
/// A few jobs of any size have room.
PushMemory::Bounds PushBounds(const Config& config) {
  constexpr size_t kMin = 32 << 20;
  constexpr size_t kJobsMin = 4;
  const size_t least = std::max<size_t>(kMin, kJobsMin * 2 * config.limits_payload_size);
  const size_t limit = MemoryPlan(config).jobs_bytes;
  return {.limit = limit, .most = std::max<size_t>(least, limit / 8), .least = least};
}

/// The address for other nodes: the node's name, usually the machine's, in place of a wildcard.
std::string Published(const Config& config, const net::Address& address) {
  const bool wildcard = address.host == "0.0.0.0" || address.host == "::";
  return wildcard ? fmt::format("{}:{}", config.node_name, address.port) : address.Text();
}

/// The id differs after each start: a node that comes back is not the one that left.
Member MakeSelf(const Config& config, const net::Address& http, const net::Address& resp, Time now) {
  return {.id = fmt::format("{}-{:08x}", config.node_name, std::random_device{}()),
          .http = Published(config, http),
          .resp = Published(config, resp),
          .version = std::string(Version()),
          .joined = now,
          .heard = now};
}

std::unique_ptr<VirtualClock> MakeVirtualClock(const Config& config) {
  const auto start = ParseStartTime(config.clock_start);  // checked when it was loaded
  return start ? std::make_unique<VirtualClock>(*start) : std::make_unique<VirtualClock>();
}

}  // namespace

ServerNode::ServerNode(const Config& config)
    : config_(config),
      virtual_clock_(config.clock == ClockKind::kVirtual ? MakeVirtualClock(config) : nullptr),
      clock_(virtual_clock_ ? static_cast<Clock&>(*virtual_clock_) : real_clock_),
      main_loop_(clock_),
      signals_(main_loop_.io(), SIGINT, SIGTERM),
      stop_timer_(main_loop_.io()),
      episodes_timer_(main_loop_.io()),
      push_memory_(PushBounds(config)),
      push_memory_shown_(metrics_.AddCollector([this](metrics::Samples& samples) {
        samples.Add(metrics::Kind::kGauge, "tocsin_push_memory_bytes", "Memory of jobs on their way to receivers.", {},
                    static_cast<double>(push_memory_.bytes()));
      })),
      router_(http::MakeRouter(virtual_clock_ != nullptr)) {
  for (int shard = 0; shard < config.shards; ++shard) loops_.push_back(std::make_unique<net::AsioLoop>(clock_));
}

ServerNode::~ServerNode() { WatchLog(nullptr); }

Result<std::unique_ptr<ServerNode>> ServerNode::Open(const Config& config) {
  TOCSIN_ASSIGN(const net::Address http,
                Prefixed("http.listen", net::MakeAddress(config.http_listen.host, config.http_listen.port)));
  TOCSIN_ASSIGN(const net::Address resp,
                Prefixed("resp.listen", net::MakeAddress(config.resp_listen.host, config.resp_listen.port)));
  std::unique_ptr<ServerNode> node(new ServerNode(config));
  TOCSIN_ASSIGN(node->token_guard_, TokenGuard::Open(node->main_loop_.io(), config, http.loopback && resp.loopback));
  if (node->token_guard_ != nullptr) {
    const std::string closed = ClosedToPrefixes(config, *node->token_guard_->tokens());
    if (!closed.empty()) LogWarn("{}", closed);
  }
  TOCSIN_ASSIGN(node->tls_guard_, TlsGuard::Open(node->main_loop_.io(), config, node->metrics_));
  WarnOfClearText(config, http.loopback, resp.loopback);
  TOCSIN_TRY(node->Listen(http, resp));
  TOCSIN_ASSIGN(node->sinks_, NodeSinks::Make(config, node->clock_, node->Loops(), node->sockets_.webhooks));
  LogStart(config);
  TOCSIN_TRY(node->OpenStore());
  node->MakeShards();
  node->TellOfLog();
  node->MakeServers();
  TOCSIN_TRY(node->MakeOutbox());
  TOCSIN_TRY(node->MakeAlerts());
  node->figures_ = ShowNodeFigures(node->metrics_, config, node->sockets_.connections);
  return node;
}

Status ServerNode::Listen(const net::Address& http, const net::Address& resp) {
  sockets_ = PlanSockets(static_cast<size_t>(config_.limits_connections), OwnFiles(config_));
  const size_t connections = sockets_.connections;
  const auto open = [&](const net::Address& address, std::string refusal, std::string_view option) {
    return Prefixed(option,
                    net::Listener::Open(main_loop_.io(), address, {connections, std::move(refusal), connections_}));
  };
  const DoorsTls tls = tls_guard_ ? tls_guard_->tls() : DoorsTls();
  TOCSIN_ASSIGN(http_listener_,
                open(http, tls.http ? std::string(net::kTlsRefusal) : http::RefusalText(connections), "http.listen"));
  TOCSIN_ASSIGN(resp_listener_,
                open(resp, tls.resp ? std::string(net::kTlsRefusal) : resp::RefusalText(connections), "resp.listen"));
  return {};
}

Status ServerNode::OpenStore() {
  const Member self = MakeSelf(config_, http_listener_->address(), resp_listener_->address(), clock_.Now().utc);
  backing_ = MakeBacking({config_, clock_, virtual_clock_.get(), metrics_, main_loop_, Loops(), self, push_memory_});
  bool listening = false;
  bool told_to_stop = false;
  const auto go_on = [&] {
    if (!std::exchange(listening, true)) {
      signals_.async_wait([&](const boost::system::error_code& error, int) { told_to_stop = !error; });
    }
    main_loop_.io().poll();
    return !told_to_stop;
  };
  TOCSIN_TRY(backing_->Open(go_on));
  signals_.cancel();
  main_loop_.io().poll();
  if (told_to_stop) return Fail(Code::kShuttingDown, "told to stop during the start");
  return {};
}

void ServerNode::MakeShards() {
  monitor_ = std::make_unique<Worker>("tocsin-figures");
  std::vector<Service::ShardParts> parts;
  for (uint32_t shard = 0; shard < loops_.size(); ++shard) {
    parts.push_back(
        {.loop = loops_[shard].get(), .store = &backing_->store(shard), .shared = backing_->shared_store(shard)});
  }
  const Limits limits{.payload_bytes = config_.limits_payload_size,
                      .batch = static_cast<size_t>(config_.limits_batch),
                      .topics = static_cast<size_t>(config_.limits_topics),
                      .topics_per_prefix = static_cast<size_t>(config_.limits_topics_per_prefix),
                      .event_streams = static_cast<size_t>(config_.limits_event_streams)};
  service_ = std::make_unique<Service>(std::move(parts), clock_, metrics_, limits, sinks_.get(), &push_memory_);
  service_->Watch(*monitor_);
  service_->OnFailed([](const Error& error) {
    // Acknowledge nothing more, and run no destructor that would touch the files: the next start recovers.
    LogError("the store has failed: {}; exiting, start again to recover", error.message);
    std::_Exit(kExitStoreFailed);
  });
}

void ServerNode::TellOfLog() {
  WatchLog([&events = service_->events()](std::string_view event, LogFields fields) {
    PublishLogEvent(events, event, fields);
  });
}

void ServerNode::MakeServers() {
  scraper_ = std::make_unique<Worker>("tocsin-metrics");
  alert_book_ = std::make_shared<AlertBook>(AlertOriginOf(config_), ThresholdsOf(AlertSettingsOf(config_)));
  budget_ = std::make_unique<net::Budget>(MemoryPlan(config_).transfer_bytes, metrics_);
  const NodeInfo node{std::string(Version()), loops_.size(),       clock_.IoNow(),
                      connections_,           backing_->cluster(), alert_book_};
  const http::Context http{*service_, clock_, virtual_clock_.get(), metrics_, *scraper_, node};
  http::Options options{
      .body_bytes_max = config_.limits_body_size,
      .pages = http_listener_->address().loopback ? http::Pages::kOfThisMachine : http::Pages::kOfTheirHost};
  for (const std::string_view host : CommaList(config_.http_allowed_hosts)) options.allowed_hosts.emplace_back(host);
  const resp::Context resp{*service_, clock_, virtual_clock_.get(), metrics_, node};
  for (const auto& loop : loops_) {
    http_servers_.push_back(std::make_unique<http::Server>(http, router_, *budget_, *loop, options));
    resp_servers_.push_back(std::make_unique<resp::Server>(resp, *budget_, *loop,
                                                           resp::Options{.frame_bytes_max = config_.limits_body_size}));
    if (tls_guard_) SpeakTls(http_servers_.size() - 1, tls_guard_->tls());
    if (!token_guard_) continue;
    http_servers_.back()->Admit(token_guard_->tokens());
    resp_servers_.back()->Admit(token_guard_->tokens());
  }
}

Status ServerNode::MakeOutbox() {
  if (config_.outbox_url.empty()) return {};
  TOCSIN_ASSIGN(mysql::Options mysql, OutboxOptionsOf(config_));
  std::vector<Loop*> loops;
  for (const auto& loop : loops_) loops.push_back(loop.get());
  outbox_ = std::make_unique<outbox::Outbox>(outbox::Outbox::Parts{.mysql = std::move(mysql),
                                                                   .rules = {.limits = service_->limits(),
                                                                             .prefix = config_.outbox_prefix,
                                                                             .identity = {},
                                                                             .from_pick_up = virtual_clock_ != nullptr},
                                                                   .service = *service_,
                                                                   .loops = std::move(loops),
                                                                   .clock = clock_,
                                                                   .budget = *budget_,
                                                                   .metrics = metrics_});
  return Prefixed("outbox.url", outbox_->Check());
}

Status ServerNode::MakeAlerts() {
  std::unique_ptr<AlertPoster> poster;
  if (!config_.alerts_webhook_url.empty()) {
    TOCSIN_ASSIGN(poster, AlertPoster::Make(config_, main_loop_, clock_, metrics_, *alert_book_,
                                            HttpUrl(Published(config_, http_listener_->address()))));
  }
  alerts_ = std::make_unique<NodeAlerts>(NodeAlerts::Parts{.config = config_,
                                                           .clock = clock_,
                                                           .metrics = metrics_,
                                                           .main_loop = main_loop_,
                                                           .shard_loop = *loops_[0],
                                                           .service = *service_,
                                                           .backing = *backing_,
                                                           .worker = *scraper_,
                                                           .outbox = outbox_.get(),
                                                           .book = alert_book_,
                                                           .poster = std::move(poster)});
  return {};
}

std::vector<net::AsioLoop*> ServerNode::Loops() const {
  std::vector<net::AsioLoop*> loops;
  for (const auto& loop : loops_) loops.push_back(loop.get());
  return loops;
}

std::string ServerNode::Banner() const {
  return BannerText({.version = VersionText(),
                     .store = backing_->Describe(),
                     .url = HttpUrl(http_listener_->address().Text()),
                     .resp = resp_listener_->address().Text(),
                     .resp_tls = tls_guard_ && tls_guard_->tls().resp,
                     .dashboard = !http::UiFiles().empty(),
                     .virtual_clock = virtual_clock_ != nullptr,
                     .tokens = token_guard_ != nullptr});
}

void ServerNode::StartThreads() {
  backing_->Start();
  service_->Start();
  const std::vector<net::AsioLoop*> loops = Loops();
  for (size_t shard = 0; shard < loops.size(); ++shard) {
    threads_.emplace_back([this, loop = loops[shard], shard] {
      pthread_setname_np(pthread_self(), fmt::format("shard-{}", shard).c_str());
      net::Turns turns(metrics_, shard);
      const net::Turns::Measuring measuring(turns);
      loop->Run();
    });
  }
  if (outbox_ != nullptr) outbox_->Start();
  http_listener_->Start(loops, [this](size_t shard, net::Socket socket, net::ConnectionPass pass) {
    http_servers_[shard]->Accept(std::move(socket), std::move(pass));
  });
  resp_listener_->Start(loops, [this](size_t shard, net::Socket socket, net::ConnectionPass pass) {
    resp_servers_[shard]->Accept(std::move(socket), std::move(pass));
  });
}

void ServerNode::SpeakTls(size_t shard, const DoorsTls& tls) {
  if (tls.http) http_servers_[shard]->SpeakTls(tls.http);
  if (tls.resp) resp_servers_[shard]->SpeakTls(tls.resp);
}

std::string ServerNode::HttpUrl(const std::string& address) const {
  return (tls_guard_ && tls_guard_->tls().http ? "https://" : "http://") + address;
}

void ServerNode::WatchFiles() {
  if (!token_guard_ && !tls_guard_) {
    // SIGHUP means that the terminal was closed; under nohup it is ignored, and we go on.
    struct sigaction inherited{};
    sigaction(SIGHUP, nullptr, &inherited);
    if (inherited.sa_handler != SIG_IGN) signals_.add(SIGHUP);
  }
  if (token_guard_) WatchTokens();
  if (!tls_guard_) return;
  tls_guard_->Start([this](const DoorsTls& tls) {
    for (size_t shard = 0; shard < loops_.size(); ++shard) {
      loops_[shard]->Post([this, shard, tls] { SpeakTls(shard, tls); });
    }
  });
}

void ServerNode::WatchTokens() {
  token_guard_->Start([this](const TokenGuard::Tokens& tokens) {
    for (size_t shard = 0; shard < loops_.size(); ++shard) {
      loops_[shard]->Post([this, shard, tokens] {
        http_servers_[shard]->Admit(tokens);
        resp_servers_[shard]->Admit(tokens);
      });
    }
  });
}

int ServerNode::Run() {
  StartThreads();
  WatchFiles();
  AwaitSignal();
  WatchEpisodes();
  alerts_->Start();
  LogReady({.http = http_listener_->address().Text(),
            .resp = resp_listener_->address().Text(),
            .tls = tls_guard_ ? tls_guard_->tls().Names() : "",
            .jobs_recovered = backing_->jobs_recovered(),
            .took = std::chrono::duration_cast<Millis>(real_clock_.IoNow() - began_)});
  main_loop_.Run();
  for (const auto& loop : loops_) loop->Stop();
  threads_.clear();
  return Finish();
}

void ServerNode::WatchEpisodes() {
  LookAtEpisodes(real_clock_.IoNow());
  episodes_timer_.expires_after(std::chrono::seconds(1));
  episodes_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) WatchEpisodes();
  });
}

int ServerNode::Finish() {
  int status = kExitOk;
  if (const Status closed = backing_->Close(); !closed) {
    LogError("cannot close the store: {}", closed.error().message);
    status = kExitStoreFailed;
  }
  LogStopped(std::chrono::duration_cast<Millis>(real_clock_.IoNow() - stop_began_), CountJobs(),
             parts_running_ == 0 && status == kExitOk);
  if (parts_running_ > 0) std::_Exit(status);  // an unanswered call still refers to the service
  http_servers_.clear();
  resp_servers_.clear();
  outbox_.reset();
  WatchLog(nullptr);  // it tells the service
  service_.reset();
  return status;
}

std::optional<JobCounts> ServerNode::CountJobs() {
  JobCounts counts;
  for (uint32_t shard = 0; shard < loops_.size(); ++shard) {
    if (backing_->shared_store(shard) != nullptr) return std::nullopt;
    for (const TopicFigures& figures : backing_->store(shard).Topics()) {
      counts.scheduled += figures.scheduled;
      counts.leased += figures.leased;
      counts.dead += figures.dead;
    }
  }
  return counts;
}

void ServerNode::AwaitSignal() {
  signals_.async_wait([this](const boost::system::error_code& error, int signal) {
    if (error) return;
    if (stopping_) {
      LogWarn("second signal: exiting at once");
      std::_Exit(128 + signal);
    }
    LogStopping(signal, connections_->load());
    stop_began_ = real_clock_.IoNow();
    Stop();
    AwaitSignal();
  });
}

void ServerNode::Stop() {
  stopping_ = true;
  http_listener_->Close();
  resp_listener_->Close();
  parts_running_ = 3 + (outbox_ != nullptr ? 1 : 0) + 2 * loops_.size();
  alerts_->Stop([this] { main_loop_.Post([this] { PartStopped(); }); });
  if (outbox_ != nullptr) outbox_->Stop([this] { main_loop_.Post([this] { PartStopped(); }); });
  backing_->Leave([this] { Drain(); });
  stop_timer_.expires_after(kStopTime);
  stop_timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    LogWarn("some requests were not answered within {} s; stopping without them", kStopTime.count() / 1000);
    main_loop_.Stop();
  });
}

void ServerNode::Drain() {
  for (size_t shard = 0; shard < loops_.size(); ++shard) {
    loops_[shard]->Post([this, shard] {
      http_servers_[shard]->Drain([this] { main_loop_.Post([this] { PartStopped(); }); });
      resp_servers_[shard]->Drain([this] { main_loop_.Post([this] { PartStopped(); }); });
      main_loop_.Post([this] { ShardDrains(); });
    });
  }
}

void ServerNode::ShardDrains() {
  // Wait for all of them: a draining server marks each answer as the last one, and a stopped service refuses calls.
  if (++shards_draining_ < loops_.size()) return;
  loops_[0]->Post([this] { service_->Stop(*loops_[0], [this] { main_loop_.Post([this] { PartStopped(); }); }); });
}

void ServerNode::PartStopped() {
  if (--parts_running_ == 0) main_loop_.Stop();
  if (parts_running_ != 1) return;
  // The servers have released what was in answers that nobody read. A store that outlives this node has to hear of it.
  loops_[0]->Post(
      [this] { service_->AwaitReleases(*loops_[0], [this] { main_loop_.Post([this] { PartStopped(); }); }); });
}

}  // namespace tocsin
