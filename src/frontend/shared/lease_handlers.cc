#include "frontend/shared/lease_handlers.h"

#include <algorithm>

#include "base/text.h"
#include "frontend/shared/views.h"
#include "model/names.h"

namespace tocsin::shared {
namespace {

constexpr int64_t kPageDefault = 100;
constexpr size_t kTopicsMax = 256;  // whose jobs one page of all leases looks at

/// For the next part of a list: the room that is left after the parts before it.
struct RestOfRoom final : JobRoom {
  explicit RestOfRoom(JobRoom& the_whole) : whole(the_whole) {}

  bool Reach(size_t more_jobs, size_t more_bytes) override { return whole.Reach(jobs + more_jobs, bytes + more_bytes); }
  void Lower(size_t more_jobs, size_t more_bytes) override { whole.Lower(jobs + more_jobs, bytes + more_bytes); }
  void Take(const JobBatch& part) {
    jobs += part.jobs.size();
    for (const JobView& job : part.jobs) bytes += CountedBytes(job) + job.reason.size();
  }

  JobRoom& whole;
  size_t jobs = 0;
  size_t bytes = 0;
};

/// A page of leases while it is gathered, topic by topic. Each topic takes its own turn. Topics without leased jobs are
/// skipped.
struct Leasing {
  explicit Leasing(Call the_call) : call(std::move(the_call)), room(call.reply->room()) {
    what.states = StateSet::Of(State::kLeased);
    what.holder = call.arguments.where.holder;
    const auto wanted = static_cast<size_t>(call.arguments.limit.value_or(kPageDefault));
    limit = std::min(wanted, call.service.limits().batch);
  }

  Call call;
  RestOfRoom room;
  Selector what;
  size_t limit = 0;
  std::vector<std::string> topics = {};  // to read
  size_t next = 0;                       // of them
  size_t read = 0;                       // topics so far, also before these
  std::string inner = {};                // the cursor within the next one
  std::string after = {};                // from where on more topics are looked for
  bool more_topics = true;               // behind it
  std::vector<std::pair<std::string, JobBatch>> found = {};
  std::string cursor = {};  // of the page
};

using LeasingPtr = std::shared_ptr<Leasing>;

/// Without what an answer does not show, so that no room is made for it.
void Keep(Leasing& leasing, const std::string& topic, JobBatch jobs) {
  if (jobs.jobs.empty()) return;
  for (JobView& job : jobs.jobs) {
    job.payload = {};
    job.headers.clear();
  }
  leasing.found.emplace_back(topic, std::move(jobs));
}

void SendLeases(Leasing& leasing) {
  Reply& reply = *leasing.call.reply;
  constexpr size_t kTopicBytesMax = 300;  // with its name and its framing
  size_t bytes = 0;
  size_t leases = 0;
  for (const auto& [topic, jobs] : leasing.found) {
    bytes += BytesMax(jobs) + kTopicBytesMax * jobs.jobs.size();
    leases += jobs.jobs.size();
  }
  if (const Status room = reply.MakeRoom(bytes); !room) return reply.Fail(room.error());
  ValueWriter& out = reply.BeginPage("leases", leasing.cursor, leases);
  for (const auto& [topic, jobs] : leasing.found) {
    for (const JobView& job : jobs.jobs) ShowLease(out, topic, job);
  }
  reply.Send();
}

void ReadNext(const LeasingPtr& leasing);

void TakePage(const LeasingPtr& leasing, Result<Page> page) {
  const std::string& topic = leasing->topics[leasing->next];
  const bool dropped = !page && page.error().code == Code::kTopicNotFound;
  if (!page && !dropped) {
    // What was found before it is worth an answer; the cursor leads here again.
    const bool cramped = page.error().code == Code::kOverloaded && !leasing->found.empty();
    return cramped ? SendLeases(*leasing) : leasing->call.reply->Fail(page.error());
  }
  leasing->inner.clear();
  if (!dropped) {
    leasing->room.Take(page->jobs);
    leasing->inner = std::move(page->cursor);
    Keep(*leasing, topic, std::move(page->jobs));
  }
  leasing->cursor = fmt::format("{}/{}", topic, leasing->inner);
  const bool topic_ends = leasing->inner.empty();
  leasing->next += topic_ends ? 1 : 0;
  leasing->read += topic_ends ? 1 : 0;
  const bool list_ends = leasing->next == leasing->topics.size() && !leasing->more_topics;
  if (list_ends) leasing->cursor.clear();
  const bool full = leasing->room.jobs >= leasing->limit || leasing->read >= kTopicsMax;
  if (list_ends || full) return SendLeases(*leasing);
  leasing->call.service.InTurn(leasing->call.loop, [leasing] { ReadNext(leasing); });
}

void FindTopics(const LeasingPtr& leasing) {
  Call& call = leasing->call;
  call.service.NextLeased(call.loop, call.prefix, leasing->after, [leasing](Result<NextTopics> found) {
    const auto connection = leasing->call.reply->connection();
    connection->Guard([&] {
      if (!found) return leasing->call.reply->Fail(found.error());
      leasing->topics = std::move(found->names);
      leasing->next = 0;
      leasing->after = std::move(found->last);
      leasing->more_topics = !leasing->after.empty();
      ReadNext(leasing);
    });
  });
}

void ReadNext(const LeasingPtr& leasing) {
  const auto connection = leasing->call.reply->connection();
  connection->Guard([&] {
    if (!connection->open()) return;
    if (leasing->next == leasing->topics.size()) {
      if (leasing->more_topics) return FindTopics(leasing);
      leasing->cursor.clear();
      return SendLeases(*leasing);
    }
    ListRequest request{.topic = leasing->topics[leasing->next],
                        .what = leasing->what,
                        .cursor = leasing->inner,
                        .limit = leasing->limit - leasing->room.jobs,
                        .room = &leasing->room};
    leasing->call.service.List(leasing->call.loop, std::move(request), [leasing](Result<Page> page) {
      const auto same = leasing->call.reply->connection();
      same->Guard([&] { TakePage(leasing, std::move(page)); });
    });
  });
}

/// A cursor is the name of a topic, "/", and the cursor within it, which is empty behind the topic.
Status ReadCursor(Leasing& leasing) {
  const std::string_view text = leasing.call.arguments.cursor;
  const std::string_view topic = text.substr(0, text.find('/'));
  // The prefix is what the caller may see, so it is checked again.
  if (!text.empty() && (topic.size() == text.size() || !topic.starts_with(leasing.call.prefix))) {
    return FailField(Code::kInvalidArgument, "cursor", "cursor is not one that a list of leases gave");
  }
  if (!text.empty()) leasing.inner = text.substr(topic.size() + 1);
  if (!leasing.inner.empty()) leasing.topics.emplace_back(topic);
  leasing.after = topic;
  return {};
}

/// Changes one job, and names what became of it.
void Amend(Call call, AmendKind kind, std::string_view done) {
  Amendment amendment{.job = api::JobOf(call.arguments), .kind = kind};
  // kRemove takes jobs of other states too: it must not take one that somebody has redriven meanwhile.
  if (kind == AmendKind::kRemove) amendment.seen = Seen{.state = State::kDead};
  if (call.arguments.attempt) amendment.seen = Seen{.attempt = static_cast<uint32_t>(*call.arguments.attempt)};
  AmendRequest request{.topic = std::move(call.topic), .amendments = {amendment}, .bytes = std::move(call.bytes)};
  call.service.Amend(call.loop, std::move(request),
                     [done, reply = std::move(call.reply)](Result<std::vector<Amended>> amended) mutable {
                       const auto connection = reply->connection();
                       connection->Guard([&] {
                         if (!amended) return reply->Fail(amended.error());
                         const AmendOutcome outcome = amended->front().outcome;
                         if (const auto refusal = RefusalOf(outcome)) return reply->Fail(*refusal);
                         reply->Became(NameOf(outcome, done));
                       });
                     });
}

}  // namespace

void ListLeases(Call call) {
  const auto leasing = std::make_shared<Leasing>(std::move(call));
  ListRequest request{.topic = leasing->call.topic,
                      .what = leasing->what,
                      .cursor = std::string(leasing->call.arguments.cursor),
                      .limit = leasing->limit,
                      .room = &leasing->room};
  leasing->call.service.List(leasing->call.loop, std::move(request), [leasing](Result<Page> page) {
    const auto connection = leasing->call.reply->connection();
    connection->Guard([&] {
      if (!page) return leasing->call.reply->Fail(page.error());
      leasing->cursor = std::move(page->cursor);
      Keep(*leasing, leasing->call.topic, std::move(page->jobs));
      SendLeases(*leasing);
    });
  });
}

void ListAllLeases(Call call) {
  const auto leasing = std::make_shared<Leasing>(std::move(call));
  if (const Status read = ReadCursor(*leasing); !read) return leasing->call.reply->Fail(read.error());
  ReadNext(leasing);
}

void RevokeLease(Call call) { Amend(std::move(call), AmendKind::kRevoke, "revoked"); }

void RedriveJob(Call call) { Amend(std::move(call), AmendKind::kRedrive, "redriven"); }

void RemoveDeadJob(Call call) {
  const auto held = std::make_shared<Call>(std::move(call));
  FindRequest request{
      .topic = held->topic, .jobs = {api::JobOf(held->arguments)}, .bytes = held->bytes, .room = &held->reply->room()};
  // Finds out first how a job that is no dead letter is to be answered.
  held->service.Find(held->loop, std::move(request), [held](Result<JobBatch> found) {
    const auto connection = held->reply->connection();
    connection->Guard([&] {
      if (!found) return held->reply->Fail(found.error());
      const JobView& job = found->jobs.front();
      if (job.uid == 0) return held->reply->Became(NameOf(AmendOutcome::kUnknown, ""));
      if (job.state == State::kLeased) return held->reply->Became(NameOf(AmendOutcome::kInFlight, ""));
      if (job.state != State::kDead) return held->reply->Became(NameOf(AmendOutcome::kFinished, ""));
      Amend(std::move(*held), AmendKind::kRemove, "removed");
    });
  });
}

}  // namespace tocsin::shared
