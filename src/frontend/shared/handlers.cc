#include "frontend/shared/handlers.h"

#include <array>

#include "base/text.h"
#include "frontend/shared/views.h"

namespace tocsin::shared {
namespace {

using api::VerbId;

/// Answers an error, or hands the result on. An exception ends the caller's connection alone.
template <class T, class Send>
Done<T> Answer(std::unique_ptr<Reply> reply, Send send) {
  return [reply = std::move(reply), send = std::move(send)](Result<T> result) mutable {
    const auto connection = reply->connection();
    connection->Guard([&] {
      if (!result) return reply->Fail(result.error());
      if constexpr (std::is_void_v<T>) {
        send(*reply);
      } else {
        send(*reply, *result);
      }
    });
  };
}

/// Sends a value as it is shown.
constexpr auto kShow = [](Reply& reply, const auto& value) {
  Show(reply.Begin(), value);
  reply.Send();
};

void Change(Call call, IfUnknown if_unknown) {
  ChangeTopicRequest request{std::move(call.topic), std::move(call.change), if_unknown, std::move(call.prefix)};
  call.service.ChangeTopic(call.loop, std::move(request),
                           Answer<ChangedTopic>(std::move(call.reply), [](Reply& reply, const ChangedTopic& changed) {
                             Show(reply.Begin(), changed.topic);
                             reply.Send(changed.created);
                           }));
}

void PutTopic(Call call) { Change(std::move(call), IfUnknown::kCreate); }

template <bool paused>
void SetPaused(Call call) {
  call.change.Set("paused", paused ? 1 : 0);
  Change(std::move(call), IfUnknown::kRefuse);
}

void ShowTopic(Call call) {
  call.service.ShowTopic(call.loop, std::move(call.topic), Answer<TopicReport>(std::move(call.reply), kShow));
}

/// A long answer that is written in steps, of which the loop does one in a turn. `step` returns false at the end.
struct LongAnswer {
  Service& service;
  Loop& loop;
  std::unique_ptr<Reply> reply;
  std::move_only_function<bool()> step = {};
};

void WriteOn(const std::shared_ptr<LongAnswer>& answer) {
  const auto connection = answer->reply->connection();
  connection->Guard([&] {
    if (!answer->step()) return answer->reply->Send();
    answer->service.InTurn(answer->loop, [answer] { WriteOn(answer); });
  });
}

void ListTopics(Call call) {
  struct List {
    std::deque<TopicReport> topics;  // one step after the other adds to it, or takes away
    size_t bytes = 0;                // of the answer
  };
  const auto answer = std::make_shared<LongAnswer>(call.service, call.loop, std::move(call.reply));
  const auto list = std::make_shared<List>();
  auto take = [answer, list](TopicReport topic) -> Status {
    if (!answer->reply->connection()->open()) return Fail(Code::kUnavailable, "the client has gone");
    list->bytes += BytesMax(topic.figures.topic);
    TOCSIN_TRY(answer->reply->MakeRoom(list->bytes));
    list->topics.push_back(std::move(topic));
    return {};
  };
  const auto write = [answer, list] {
    ValueWriter& out = answer->reply->BeginSingle("topics");
    out.Array(list->topics.size());
    answer->step = [&out, list] {
      constexpr size_t kEach = 32;
      for (size_t i = 0; i < kEach && !list->topics.empty(); ++i, list->topics.pop_front()) {
        Show(out, list->topics.front());
      }
      if (list->topics.empty()) out.EndArray();
      return !list->topics.empty();
    };
    WriteOn(answer);
  };
  call.service.Topics(call.loop, std::move(call.prefix), std::move(take), [answer, write](const Result<void>& all) {
    const auto connection = answer->reply->connection();
    connection->Guard([&] { all ? write() : answer->reply->Fail(all.error()); });
  });
}

void DropTopic(Call call) {
  call.service.DropTopic(call.loop, std::move(call.topic),
                         Answer<void>(std::move(call.reply), [](Reply& reply) { reply.Done("dropped"); }));
}

void TestTopic(Call call) {
  call.service.Probe(call.loop, std::move(call.topic), Answer<Probed>(std::move(call.reply), kShow));
}

/// `word`: what the number of jobs is called in the answer.
void Sweep(Call call, SweepKind kind, std::string_view word) {
  call.service.Sweep(call.loop, std::move(call.topic), kind,
                     Answer<size_t>(std::move(call.reply), [word](Reply& reply, size_t jobs) {
                       reply.BeginSingle(word).Number(static_cast<int64_t>(jobs));
                       reply.Send();
                     }));
}

/// In RESP one command purges everything or, with the word DEAD, the dead letters.
void PurgeTopic(Call call) {
  const auto kind = call.arguments.dead ? SweepKind::kPurgeDead : SweepKind::kPurge;
  Sweep(std::move(call), kind, "purged");
}

void PurgeDead(Call call) { Sweep(std::move(call), SweepKind::kPurgeDead, "purged"); }

void RedriveDead(Call call) { Sweep(std::move(call), SweepKind::kRedrive, "redriven"); }

void ShowJob(Call call) {
  if (const Status room = call.reply->MakeRoom(Reply::kAnyLarge); !room) return call.reply->Fail(room.error());
  const JobRef job = api::JobOf(call.arguments);
  auto send = [id = std::string(job.id)](Reply& reply, const JobBatch& found) {
    if (const Status room = reply.MakeRoom(BytesMax(found)); !room) return reply.Fail(room.error());
    if (found.jobs.front().uid == 0) {
      return reply.Missing({Code::kNotFound, fmt::format("no job {} is stored", Shown(id)), "id"});
    }
    kShow(reply, found.jobs.front());
  };
  FindRequest request{.topic = std::move(call.topic), .jobs = {job}, .bytes = std::move(call.bytes)};
  call.service.Find(call.loop, std::move(request), Answer<JobBatch>(std::move(call.reply), std::move(send)));
}

void ListJobs(Call call) {
  static constexpr size_t kJobBytes = 512;  // without its payload
  constexpr int64_t kPageDefault = 100;
  if (const Status room = call.reply->MakeRoom(Reply::kAnyLarge); !room) return call.reply->Fail(room.error());
  const auto limit = static_cast<size_t>(call.arguments.limit.value_or(kPageDefault));
  ListRequest request{.topic = std::move(call.topic),
                      .state = call.arguments.state,
                      .cursor = std::string(call.arguments.cursor),
                      .limit = std::min(limit, call.service.limits().batch)};
  const auto answer = std::make_shared<LongAnswer>(call.service, call.loop, std::move(call.reply));
  const auto begin = [answer, reason = std::string(call.arguments.reason)](Page& page) {
    Reply& reply = *answer->reply;
    // The store does not filter, so a page may be empty though more follow.
    if (!reason.empty()) KeepWithReason(page.jobs, reason);
    if (const Status room = reply.MakeRoom(BytesMax(page.jobs)); !room) return reply.Fail(room.error());
    ValueWriter& out = reply.BeginPage(page.cursor, page.jobs.jobs.size());
    answer->step = [&out, jobs = std::move(page.jobs), next = size_t{0}]() mutable {
      constexpr size_t kBytesEach = 256 << 10;
      for (size_t bytes = 0; next < jobs.jobs.size() && bytes < kBytesEach; ++next) {
        Show(out, jobs.jobs[next]);
        bytes += kJobBytes + jobs.jobs[next].payload.size();
      }
      return next < jobs.jobs.size();
    };
    WriteOn(answer);
  };
  call.service.List(call.loop, std::move(request), [answer, begin](Result<Page> page) {
    const auto connection = answer->reply->connection();
    connection->Guard([&] { page ? begin(*page) : answer->reply->Fail(page.error()); });
  });
}

void ShowCluster(Call call) {
  call.node.cluster->Describe(call.loop, Answer<ClusterReport>(std::move(call.reply), kShow));
}

void AdvanceClock(Call call) {
  if (call.virtual_clock == nullptr) {
    return call.reply->Fail({Code::kUnknownCommand, "this needs a server with clock = \"virtual\"", {}});
  }
  call.virtual_clock->Advance(Millis(*call.arguments.advance_ms));
  auto send = [&clock = call.clock](Reply& reply) {
    reply.BeginSingle("now_ms").Number(ToMs(clock.Now().utc));
    reply.Send();
  };
  call.service.ClockMoved(call.loop, [answer = Answer<void>(std::move(call.reply), send)]() mutable { answer({}); });
}

constexpr std::pair<VerbId, Handler> kHandlers[] = {
    {VerbId::kShowJob, ShowJob},
    {VerbId::kListJobs, ListJobs},
    {VerbId::kPutTopic, PutTopic},
    {VerbId::kShowTopic, ShowTopic},
    {VerbId::kDropTopic, DropTopic},
    {VerbId::kListTopics, ListTopics},
    {VerbId::kPauseTopic, SetPaused<true>},
    {VerbId::kResumeTopic, SetPaused<false>},
    {VerbId::kTestTopic, TestTopic},
    {VerbId::kPurgeTopic, PurgeTopic},
    {VerbId::kRedriveDead, RedriveDead},
    {VerbId::kPurgeDead, PurgeDead},
    {VerbId::kShowCluster, ShowCluster},
    {VerbId::kAdvanceClock, AdvanceClock},
};

}  // namespace

Handler HandlerOf(VerbId verb) {
  const auto* const found = std::ranges::find(kHandlers, verb, &std::pair<VerbId, Handler>::first);
  return found == std::end(kHandlers) ? nullptr : found->second;
}

}  // namespace tocsin::shared
