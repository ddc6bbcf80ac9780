#include "nodes/crowd.h"

#include <algorithm>
#include <future>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/result.h"
#include "coordination/redis/coordinator.h"
#include "model/topic.h"
#include "real/ask.h"

namespace tocsin::bench {
namespace {

constexpr Millis kScanEvery{1'000};
constexpr Millis kLookEvery{20};
constexpr uint32_t kSlotsMax = 1024;

redis::Options OptionsOf(const CrowdOptions& crowd) {
  redis::Options options;
  options.endpoints = {{"127.0.0.1", crowd.port}};
  options.beat_min = Millis(200);
  return options;
}

}  // namespace

CrowdNode::CrowdNode(const CrowdOptions& options, std::string id)
    : options_(options), id_(std::move(id)), loop_(clock_) {
  auto client = redis::Client::Make(loop_.io(), OptionsOf(options_), metrics_);
  TOCSIN_CHECK(client);
  client_ = *std::move(client);
  store_ = std::make_unique<redis::RedisStore>(*client_, clock_,
                                               redis::StoreOptions{.node = id_, .groups = {.count = options_.groups}});
  auto coordinator =
      RedisCoordinator::Make(loop_.io(), clock_, OptionsOf(options_), metrics_, {.session = options_.session});
  TOCSIN_CHECK(coordinator);
  ownership_ =
      std::make_unique<Ownership>("redis", options_.groups, loop_, std::vector<OwnedShard>{{&loop_, store_.get()}},
                                  *std::move(coordinator), Member{.id = id_}, metrics_);
  loop_.OnAlarm([this] { Advance(); });
  thread_ = std::jthread([this] { loop_.Run(); });
  Open();
}

CrowdNode::~CrowdNode() {
  Die();
  ownership_.reset();
  client_->Close();
}

void CrowdNode::Await(const std::function<void(Task)>& call) {
  std::promise<void> done;
  loop_.Post([&] { call([&done] { done.set_value(); }); });
  done.get_future().wait();
}

void CrowdNode::Open() {
  bool open = false;
  // A busy machine may keep Redis from answering in time.
  for (int tries = 0; !open && tries < 20; ++tries) {
    Await([&](Task done) {
      store_->Open([&open, done = std::move(done)](const Result<void>& opened) mutable {
        open = opened.has_value();
        done();
      });
    });
  }
  TOCSIN_CHECK(open);
  Await([this](Task done) {
    store_->OnChanged([this] { loop_.Post([this] { Advance(); }); });
    ownership_->Start();
    Advance();
    done();
  });
}

void CrowdNode::MakeTopic(const std::string& name, uint32_t slots) {
  Topic topic = DefaultTopic(name);
  topic.slots = slots;
  Await([&](Task done) {
    store_->PutTopic(topic, [done = std::move(done)](const Result<void>& put) mutable {
      if (!put) LogError("{}", put.error().message);
      TOCSIN_CHECK(put);
      done();
    });
  });
}

void CrowdNode::AwaitHeard(size_t topics) const {
  for (size_t heard = heard_count_; heard < topics; heard = heard_count_) heard_count_.wait(heard);
}

void CrowdNode::Advance() {
  if (std::exchange(advancing_, true)) {
    again_ = true;
    return;
  }
  again_ = false;
  store_->Advance(clock_.Now(), 1000, [this](Result<Advanced> advanced) {
    advancing_ = false;
    const TopicChanges changes = store_->TakeTopicChanges();  // as the core does
    for (const std::string& topic : changes.dropped) store_->ForgetTopic(topic);
    for (const HeardTopic& topic : changes.changed) {
      if (store_->AdoptTopic(topic)) heard_.insert(topic.name);
    }
    if (!changes.changed.empty()) {
      heard_count_ = heard_.size();
      heard_count_.notify_all();
    }
    if (again_) return loop_.Post([this] { Advance(); });
    Millis wait = kScanEvery;
    if (advanced && advanced->next_steady != kNever) {
      wait = std::clamp(advanced->next_steady - clock_.Now().steady, Millis(1), kScanEvery);
    }
    loop_.SetAlarm(wait);
  });
}

void CrowdNode::Leave() {
  Await([this](Task done) { ownership_->Leave(std::move(done)); });
  Die();
}

void CrowdNode::Die() {
  loop_.Stop();
  if (thread_.joinable()) thread_.join();
}

void Crowd::Join(size_t nodes) {
  for (size_t i = 0; i < nodes; ++i) {
    auto node = std::make_unique<CrowdNode>(options_, fmt::format("node-{:03}-{:08x}", made_, Mix64(made_, 1) >> 32));
    // All groups are in use.
    for (uint32_t slots = 0; made_ == 0 && slots < options_.groups; slots += kSlotsMax) {
      node->MakeTopic(fmt::format("topic-{}", slots), std::min(options_.groups, kSlotsMax));
    }
    ++made_;
    const std::string id = node->id();
    nodes_.emplace(id, std::move(node));
  }
}

std::unique_ptr<CrowdNode> Crowd::Take() {
  TOCSIN_CHECK(!nodes_.empty());
  return std::move(nodes_.extract(std::next(nodes_.begin(), static_cast<ptrdiff_t>(nodes_.size() / 2))).mapped());
}

void Crowd::Leave(size_t nodes) {
  for (size_t i = 0; i < nodes; ++i) Take()->Leave();
}

void Crowd::Die(size_t nodes) {
  std::vector<std::unique_ptr<CrowdNode>> dead;
  for (size_t i = 0; i < nodes; ++i) dead.push_back(Take());
  for (const auto& node : dead) node->Die();
}

std::string Crowd::Unassigned() const {
  std::vector<std::string> ids;
  for (const auto& [id, node] : nodes_) ids.push_back(id);
  const std::vector<size_t> owners = OwnersOf(options_.groups, ids);
  std::vector<std::string> command{"EVAL",
                                   "local all = {} for i = 1, #KEYS do all[i] = redis.call('HGET', KEYS[i], 'node') or "
                                   "'' end return all",
                                   std::to_string(options_.groups)};
  for (uint32_t group = 0; group < options_.groups; ++group) {
    command.push_back(redis::SlotKeys(tags_[group], "").Of(redis::Part::kOwner));
  }
  const auto answer = real::MustAsk(options_.port, command);
  if (!answer) return answer.error().message;
  size_t wrong = 0;
  std::string example;
  for (uint32_t group = 0; group < options_.groups; ++group) {
    const std::string& owner = answer->elements.at(group).text;
    if (owner == ids[owners[group]]) continue;
    if (++wrong == 1) example = fmt::format("group {} is {}'s instead of {}'s", group, owner, ids[owners[group]]);
  }
  if (wrong == 0) return {};
  const auto members = real::MustAsk(options_.port, {"ZCARD", RosterKeys("tocsin").lease});
  return fmt::format("{} groups do not have their owners, for example {}; there are {} nodes, and {} members", wrong,
                     example, ids.size(), members ? members->integer : -1);
}

void Crowd::MakeTopics(size_t topics, uint32_t slots) {
  CrowdNode& maker = *nodes_.begin()->second;
  for (size_t i = 0; i < topics; ++i) maker.MakeTopic(fmt::format("made-{}", i), slots);
  for (const auto& [id, node] : nodes_) {
    if (node.get() != &maker) node->AwaitHeard(topics);
  }
}

Result<Millis> Crowd::AwaitOwners(Millis most) const {
  const auto begin = std::chrono::steady_clock::now();
  while (true) {
    const std::string trouble = Unassigned();
    const auto took = std::chrono::duration_cast<Millis>(std::chrono::steady_clock::now() - begin);
    if (trouble.empty()) return took;
    if (took >= most) return Fail(Code::kTimedOut, "after {} ms {}", took.count(), trouble);
    std::this_thread::sleep_for(kLookEvery);
  }
}

CommandCounter::CommandCounter(uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): that is how sockets take addresses
  TOCSIN_CHECK(::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
  constexpr std::string_view kMonitor = "MONITOR\r\n";
  TOCSIN_CHECK(::write(socket_, kMonitor.data(), kMonitor.size()) == static_cast<ssize_t>(kMonitor.size()));
  thread_ = std::jthread([this] { Read(); });
}

CommandCounter::~CommandCounter() {
  ::shutdown(socket_, SHUT_RDWR);
  thread_.join();
  ::close(socket_);
}

Millis CommandCounter::TimeOf(uint64_t commands) const {
  const auto begin = std::chrono::steady_clock::now();
  const uint64_t until = count_ + commands;
  for (uint64_t now = count_; now < until; now = count_) count_.wait(now);
  return std::chrono::duration_cast<Millis>(std::chrono::steady_clock::now() - begin);
}

void CommandCounter::Read() {
  // A line begins with +<time> [<database> <client>]; the client of what a script calls is lua.
  constexpr size_t kHead = 64;
  std::vector<char> buffer(1 << 16);
  std::string head;
  for (ssize_t read = 0; (read = ::read(socket_, buffer.data(), buffer.size())) > 0;) {
    for (const char byte : std::span(buffer).first(static_cast<size_t>(read))) {
      if (byte != '\n') {
        if (head.size() < kHead) head.push_back(byte);
        continue;
      }
      if (head.find('[') != std::string::npos && head.find(" lua]") == std::string::npos) {
        ++count_;
        count_.notify_all();
      }
      head.clear();
    }
  }
}

}  // namespace tocsin::bench
