#include "frontend/shared/handlers.h"

#include <array>

#include "base/text.h"
#include "core/validate.h"
#include "frontend/shared/activity_handlers.h"
#include "frontend/shared/answers.h"
#include "frontend/shared/lease_handlers.h"
#include "frontend/shared/views.h"
#include "model/names.h"

namespace tocsin::shared {
namespace {

using api::VerbId;

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
  const auto send = [whole_urls = call.sees_whole_urls](Reply& reply, const TopicReport& report) {
    Show(reply.Begin(), report, whole_urls);
    reply.Send();
  };
  call.service.ShowTopic(call.loop, std::move(call.topic), Answer<TopicReport>(std::move(call.reply), send));
}

void ListTopics(Call call) {
  if (AsksForPage(call.arguments)) return ShowTopicsPage(std::move(call));
  struct List {
    std::deque<TopicReport> topics;  // one step after the other adds to it, or takes away
    size_t bytes = 0;                // of the answer
  };
  const auto answer = std::make_shared<LongAnswer>(call.service, call.loop, std::move(call.reply));
  const auto list = std::make_shared<List>();
  // At once, because a walk through thousands of topics may end with a refusal otherwise.
  const size_t expected = call.service.CountTopics(call.loop, call.prefix) * kTopicBytes;
  if (const Status room = answer->reply->MakeRoomForWhole(expected); !room) return answer->reply->Fail(room.error());
  auto take = [answer, list](TopicReport topic) {
    const auto connection = answer->reply->connection();
    Status taken = Fail(Code::kUnavailable, "the client has gone");
    connection->Guard([&] {
      if (!connection->open()) return;
      list->bytes += BytesMax(topic.figures.topic);
      taken = answer->reply->MakeRoomForWhole(list->bytes);  // new topics, and long settings, take more
      if (taken) list->topics.push_back(std::move(topic));
    });
    return taken;
  };
  const auto write = [answer, list, whole_urls = call.sees_whole_urls] {
    ValueWriter& out = answer->reply->BeginSingle("topics");
    out.Array(list->topics.size());
    answer->step = [&out, list, whole_urls] {
      constexpr size_t kEach = 32;
      for (size_t i = 0; i < kEach && !list->topics.empty(); ++i, list->topics.pop_front()) {
        Show(out, list->topics.front(), whole_urls);
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
                       reply.Note(word, static_cast<int64_t>(jobs));
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
  const JobRef job = api::JobOf(call.arguments);
  auto send = [id = std::string(job.id), payloads = call.sees_payloads](Reply& reply, const JobBatch& found) {
    if (const Status room = reply.MakeRoom(BytesMax(found)); !room) return reply.Fail(room.error());
    if (found.jobs.front().uid == 0) {
      return reply.Missing({Code::kNotFound, fmt::format("no job {} is stored", Shown(id)), "id"});
    }
    Show(reply.Begin(), found.jobs.front(), payloads);
    reply.Send();
  };
  FindRequest request{
      .topic = std::move(call.topic), .jobs = {job}, .bytes = std::move(call.bytes), .room = &call.reply->room()};
  call.service.Find(call.loop, std::move(request), Answer<JobBatch>(std::move(call.reply), std::move(send)));
}

/// Whoever may not see payloads may not ask what is in them either.
Status CheckSelector(const Call& call) {
  TOCSIN_TRY(Validate(call.arguments.where));
  if (call.sees_payloads || call.arguments.where.payload.empty()) return {};
  return FailField(Code::kForbidden, "payload", "payload: the access token does not show what is in payloads");
}

/// Whether the client still waits for the answer.
WantedStill WantedBy(const Reply& reply) {
  return [connection = reply.connection()] { return connection->open(); };
}

void ListJobs(Call call) {
  if (const Status allowed = CheckSelector(call); !allowed) return call.reply->Fail(allowed.error());
  static constexpr size_t kJobBytes = 512;  // without its payload
  constexpr int64_t kPageDefault = 100;
  const auto limit = static_cast<size_t>(call.arguments.limit.value_or(kPageDefault));
  ListRequest request{.topic = std::move(call.topic),
                      .what = std::move(call.arguments.where),
                      .cursor = std::string(call.arguments.cursor),
                      .limit = std::min(limit, call.service.limits().batch),
                      .room = &call.reply->room(),
                      .sort = call.arguments.sort,
                      .wanted = WantedBy(*call.reply)};
  const auto answer = std::make_shared<LongAnswer>(call.service, call.loop, std::move(call.reply));
  const auto begin = [answer, payloads = call.sees_payloads](Page& page) {
    Reply& reply = *answer->reply;
    if (const Status room = reply.MakeRoom(BytesMax(page.jobs)); !room) return reply.Fail(room.error());
    ValueWriter& out = reply.BeginPage("jobs", page.cursor, page.jobs.jobs.size());
    answer->step = [&out, payloads, jobs = std::move(page.jobs), next = size_t{0}]() mutable {
      constexpr size_t kBytesEach = 256 << 10;
      for (size_t bytes = 0; next < jobs.jobs.size() && bytes < kBytesEach; ++next) {
        Show(out, jobs.jobs[next], payloads);
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

void TallyJobs(Call call) {
  if (const Status allowed = CheckSelector(call); !allowed) return call.reply->Fail(allowed.error());
  api::Arguments& arguments = call.arguments;
  const bool by_header = arguments.by_what == TallyBy::kHeader || arguments.by_what == TallyBy::kNothing;
  if (arguments.by_header.empty() ? arguments.by_what == TallyBy::kHeader : !by_header) {
    return call.reply->Fail({Code::kInvalidArgument, "by_header names the header to count by", "by_header"});
  }
  TallyRequest request{.topic = std::move(call.topic),
                       .what = std::move(arguments.where),
                       .by = arguments.by_header.empty() ? arguments.by_what : TallyBy::kHeader,
                       .header = std::string(arguments.by_header),
                       .room = &call.reply->room(),
                       .wanted = WantedBy(*call.reply)};
  const auto send = [](Reply& reply, const TallyReport& tally) {
    if (const Status room = reply.MakeRoom(BytesMax(tally)); !room) return reply.Fail(room.error());
    Show(reply.Begin(), tally);
    reply.Send();
  };
  call.service.Tally(call.loop, std::move(request), Answer<TallyReport>(std::move(call.reply), send));
}

std::optional<Millis> OptionalMillis(std::optional<int64_t> ms) {
  return ms ? std::optional(Millis(*ms)) : std::nullopt;
}

void Operate(Call call) {
  if (const Status allowed = CheckSelector(call); !allowed) return call.reply->Fail(allowed.error());
  api::Arguments& arguments = call.arguments;
  const auto action = std::ranges::find(kActionNames, arguments.action) - std::begin(kActionNames);
  OperateRequest request{.topic = std::move(call.topic),
                         .what = std::move(arguments.where),
                         .action = static_cast<JobAction>(action),
                         .all = arguments.all,
                         .dry_run = arguments.dry_run,
                         .to = arguments.to_ms ? std::optional(FromMs(*arguments.to_ms)) : std::nullopt,
                         .window = OptionalMillis(arguments.over_ms),
                         .shift = OptionalMillis(arguments.shift_ms),
                         .max_attempts = static_cast<uint32_t>(arguments.max_attempts.value_or(0)),
                         .rate = {}};
  if (arguments.rate) request.rate = static_cast<uint32_t>(*arguments.rate);
  if (arguments.matched_max) request.matched_max = static_cast<uint64_t>(*arguments.matched_max);
  if (request.dry_run) request.wanted = WantedBy(*call.reply);
  const auto send = [payloads = call.sees_payloads](Reply& reply, const OperationReport& report) {
    const size_t bytes = report.samples ? BytesMax(*report.samples) : 0;
    if (const Status room = reply.MakeRoom(kOperationBytes + bytes); !room) return reply.Fail(room.error());
    reply.Note("matched", static_cast<int64_t>(report.matched));
    Show(reply.Begin(), report, payloads);
    reply.Send();
  };
  auto ended = call.audit_end ? std::move(call.audit_end) : Service::OperationEnded();
  call.service.Operate(call.loop, std::move(request), Answer<OperationReport>(std::move(call.reply), send),
                       std::move(ended));
}

void ListOperations(Call call) {
  const auto send = [](Reply& reply, const std::vector<OperationReport>& reports) {
    if (const Status room = reply.MakeRoom(kOperationBytes * (reports.size() + 1)); !room) {
      return reply.Fail(room.error());
    }
    ValueWriter& out = reply.BeginSingle("operations");
    out.Array(reports.size());
    for (const OperationReport& report : reports) Show(out, report, false);
    out.EndArray();
    reply.Send();
  };
  call.service.ListOperations(call.loop, std::move(call.topic),
                              Answer<std::vector<OperationReport>>(std::move(call.reply), send));
}

void ShowOperation(Call call) {
  std::string id(call.arguments.job.id);
  const auto send = [](Reply& reply, const OperationReport& report) {
    Show(reply.Begin(), report, false);
    reply.Send();
  };
  call.service.ShowOperation(call.loop, std::move(call.topic), std::move(id),
                             Answer<OperationReport>(std::move(call.reply), send));
}

void StopOperation(Call call) {
  std::string id(call.arguments.job.id);
  call.service.StopOperation(call.loop, std::move(call.topic), std::move(id),
                             Answer<void>(std::move(call.reply), [](Reply& reply) { reply.Done("stopped"); }));
}

/// Of all topics that the caller may see, unless the call names one.
void ShowLoad(Call call) {
  const api::Arguments& asked = call.arguments;
  LoadRequest request{.topic = std::move(call.topic),
                      .prefix = std::move(call.prefix),
                      .step = Millis(asked.step_ms.value_or(kLoadMinute.count())),
                      .by_topic = asked.load_by == api::LoadBy::kTopic,
                      .wanted = WantedBy(*call.reply)};
  if (asked.from_ms) request.from = FromMs(*asked.from_ms);
  if (asked.to_ms) request.to = FromMs(*asked.to_ms);
  const auto answer = std::make_shared<LongAnswer>(call.service, call.loop, std::move(call.reply));
  const auto begin = [answer, by_topic = request.by_topic](LoadReport& report) {
    Reply& reply = *answer->reply;
    if (const Status room = reply.MakeRoom(BytesMax(report)); !room) return reply.Fail(room.error());
    ValueWriter& out = reply.Begin();
    ShowSums(out, report, by_topic);
    answer->step = [&out, by_topic, report = std::move(report), next = size_t{0}]() mutable {
      if (next < report.largest.size()) {
        Show(out, report.largest[next++]);
        return true;
      }
      EndSums(out, by_topic);
      return false;
    };
    WriteOn(answer);
  };
  call.service.Load(call.loop, std::move(request), [answer, begin](Result<LoadReport> report) {
    const auto connection = answer->reply->connection();
    connection->Guard([&] { report ? begin(*report) : answer->reply->Fail(report.error()); });
  });
}

/// Those of the topics that the caller may see and, if these are all, of nodes.
void ListAlerts(Call call) {
  struct List {
    std::shared_ptr<const AlertBook> book;
    std::shared_ptr<const AlertBook::Listing> listing;
    std::vector<const Alert*> shown = {};
    size_t next = 0;
  };
  const auto answer = std::make_shared<LongAnswer>(call.service, call.loop, std::move(call.reply));
  const auto list = std::make_shared<List>(call.node.alerts, call.node.alerts->List());
  size_t bytes = (1 + std::size(kAlertRules)) * kAlertRuleBytes;
  for (const Alert& alert : list->listing->alerts) {
    const std::string& topic = alert.condition.topic;
    if (!call.prefix.empty() && (topic.empty() || !topic.starts_with(call.prefix))) continue;
    list->shown.push_back(&alert);
    bytes += BytesMax(alert);
  }
  Reply& reply = *answer->reply;
  if (const Status room = reply.MakeRoom(bytes); !room) return reply.Fail(room.error());
  ValueWriter& out = reply.Begin();
  out.Object(4);
  out.Name("alerts");
  out.Array(list->shown.size());
  answer->step = [&out, list] {
    constexpr size_t kEach = 64;
    const size_t stop = std::min(list->next + kEach, list->shown.size());
    for (; list->next < stop; ++list->next) Show(out, list->book->origin(), *list->shown[list->next]);
    if (list->next < list->shown.size()) return true;
    out.EndArray();
    out.Member("left_out", list->listing->left_out);
    out.Member("looks", list->listing->rounds);
    out.Name("rules");
    out.Array(std::size(kAlertRules));
    for (const AlertRule& rule : kAlertRules) Show(out, rule, list->book->ThresholdOf(rule.id));
    out.EndArray();
    out.EndObject();
    return false;
  };
  WriteOn(answer);
}

void ShowCluster(Call call) {
  call.node.cluster->Describe(call.loop, Answer<ClusterReport>(std::move(call.reply), kShow));
}

Result<Millis> AdvanceOf(const api::Arguments& arguments, Time now) {
  if (arguments.advance_ms) return Millis(*arguments.advance_ms);
  if (!arguments.advance_to_ms) return FailField(Code::kInvalidArgument, "ms", "ms or to_ms is missing");
  const Time to = FromMs(*arguments.advance_to_ms);
  if (to >= now && to <= now + kDelayMax) return to - now;
  return FailField(Code::kInvalidArgument, "to_ms", "to_ms is {}: the range is {}, the time now, to {}", ToMs(to),
                   ToMs(now), ToMs(now + kDelayMax));
}

void AdvanceClock(Call call) {
  if (call.virtual_clock == nullptr) {
    return call.reply->Fail({Code::kUnknownCommand, "this needs a server with clock = \"virtual\"", {}});
  }
  const auto by = AdvanceOf(call.arguments, call.clock.Now().utc);
  if (!by) return call.reply->Fail(by.error());
  call.virtual_clock->Advance(*by);
  auto send = [&clock = call.clock](Reply& reply) {
    reply.BeginSingle("now_ms").Number(ToMs(clock.Now().utc));
    reply.Send();
  };
  call.service.ClockMoved(call.loop, [answer = Answer<void>(std::move(call.reply), send)]() mutable { answer({}); });
}

constexpr std::pair<VerbId, Handler> kHandlers[] = {
    {VerbId::kShowJob, ShowJob},
    {VerbId::kListJobs, ListJobs},
    {VerbId::kTallyJobs, TallyJobs},
    {VerbId::kListLeases, ListLeases},
    {VerbId::kListAllLeases, ListAllLeases},
    {VerbId::kRevokeLease, RevokeLease},
    {VerbId::kRedriveJob, RedriveJob},
    {VerbId::kRemoveDeadJob, RemoveDeadJob},
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
    {VerbId::kOperate, Operate},
    {VerbId::kListOperations, ListOperations},
    {VerbId::kShowOperation, ShowOperation},
    {VerbId::kStopOperation, StopOperation},
    {VerbId::kShowTopicLoad, ShowLoad},
    {VerbId::kShowLoad, ShowLoad},
    {VerbId::kListAlerts, ListAlerts},
    {VerbId::kShowCluster, ShowCluster},
    {VerbId::kAdvanceClock, AdvanceClock},
    {VerbId::kShowHistory, ShowHistory},
    {VerbId::kShowTopicHistory, ShowHistory},
    {VerbId::kShowLateness, ShowLateness},
    {VerbId::kListDeliveries, ListDeliveries},
};

}  // namespace

Handler HandlerOf(VerbId verb) {
  const auto* const found = std::ranges::find(kHandlers, verb, &std::pair<VerbId, Handler>::first);
  return found == std::end(kHandlers) ? nullptr : found->second;
}

}  // namespace tocsin::shared
