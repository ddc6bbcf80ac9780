// Submitting, changing, reserving and settling jobs, and the commands whose handlers are the same on every door.
// Consecutive commands of one kind for one topic become one call of the service (Pipeline). Each command is checked by
// itself, so that it fails alone.
#include "api/syntax.h"
#include "core/validate.h"
#include "frontend/resp/commands/commands.h"
#include "frontend/shared/audit.h"
#include "frontend/shared/restore_access.h"
#include "frontend/shared/views.h"

namespace tocsin::resp {
namespace {

using api::Wire;

Status Read(const Call& call, api::Arguments& arguments) {
  return ReadArguments(call.args.subspan(1), *call.command.verb, arguments);
}

const Context& ContextOf(const Call& call) { return call.session.server().context(); }

Status CheckBatch(const Call& call, std::string_view what, size_t items) {
  const size_t most = ContextOf(call).service.limits().batch;
  if (items <= most) return {};
  return FailField(Code::kInvalidArgument, std::string(what), "{} {} in one command: the most is {}", items, what,
                   most);
}

Status Amend(Call& call, const Amendment& amendment) {
  const Context& context = ContextOf(call);
  TOCSIN_TRY(Validate(amendment, context.service.limits(), context.clock.Now()));
  call.session.pipeline().Open<AmendRun>(call, 1).request.amendments.push_back(amendment);
  return {};
}

Status AmendAs(Call& call, AmendKind kind) {
  api::Arguments arguments;
  TOCSIN_TRY(Read(call, arguments));
  return Amend(call, {.job = JobOf(arguments), .kind = kind});
}

/// `word` as errors show it.
Error NotAToken(std::string_view word, std::span<const api::Field> fields) {
  std::string message = fmt::format("'{}' is not a delivery token that a reserve gave out", word);
  const auto options = api::RespWords(fields);
  if (!options.empty()) message += fmt::format(", nor an option; the options are {}", fmt::join(options, ", "));
  return {Code::kInvalidArgument, std::move(message), "token"};
}

/// Tokens stand first; an option begins with the first word that is none.
Status Settle(Call& call, SettleKind kind) {
  static thread_local std::vector<Token> tokens;  // scratch
  tokens.clear();
  Values args = call.args.subspan(1);
  for (; !args.empty(); args = args.subspan(1)) {
    const auto token = ParseToken(args.front());
    if (!token) break;
    tokens.push_back(*token);
  }
  api::Arguments arguments;
  const auto fields = call.command.verb->fields;
  const Status status = ReadWords(args, fields, arguments);
  if (!status && status.error().code == Code::kUnknownField) {
    return std::unexpected(NotAToken(status.error().field, fields));
  }
  TOCSIN_TRY(status);
  TOCSIN_TRY(CheckTogether(fields, Wire::kResp, arguments));
  if (tokens.empty()) return FailField(Code::kInvalidArgument, "token", "a delivery token is missing");
  TOCSIN_TRY(CheckBatch(call, "tokens", tokens.size()));
  const Settlement each = SettlementOf(kind, arguments);
  TOCSIN_TRY(Validate(each, ContextOf(call).service.limits()));
  SettleRun& run = call.session.pipeline().Open<SettleRun>(call, tokens.size());
  run.parts.push_back({.items = tokens.size()});
  run.request.settlements.reserve(run.request.settlements.size() + tokens.size());
  for (const Token& token : tokens) run.request.settlements.emplace_back(each).token = token;
  return {};
}

class RespReply final : public shared::Reply {
 public:
  explicit RespReply(Answer answer) : answer_(std::move(answer)), room_(answer_.NewRoom()), out_(answer_.writer()) {}

  std::shared_ptr<net::Connection> connection() const override { return answer_.connection(); }
  JobRoom& room() override { return room_; }
  Status MakeRoom(size_t bytes) override {
    answer_.TakeRoom(room_);
    TOCSIN_TRY(answer_.MakeRoom(bytes));
    out_.Reserve(bytes);  // a large text must not be copied while it grows
    return {};
  }
  Status MakeRoomForWhole(size_t bytes) override {
    TOCSIN_TRY(answer_.MakeRoomForWhole(bytes));
    out_.Reserve(bytes);
    return {};
  }
  void Fail(const Error& error) override { answer_.Fail(error); }
  void Missing(const Error& /*error*/) override {
    out_.Null();
    answer_.Done();
  }
  void Done(std::string_view /*outcome*/) override {
    out_.Simple("OK");
    answer_.Done();
  }
  void Became(std::string_view outcome) override {
    out_.Simple(outcome);
    answer_.Done();
  }
  shared::ValueWriter& Begin() override { return out_; }
  shared::ValueWriter& BeginSingle(std::string_view /*name*/) override { return out_; }
  shared::ValueWriter& BeginPage(std::string_view /*name*/, std::string_view cursor, size_t items) override {
    out_.Array(2);
    cursor.empty() ? out_.Null() : out_.Text(cursor);
    out_.Array(items);
    return out_;
  }
  void Send(bool /*created*/) override {
    answer_.Done();
    answer_.GiveBackRoom();
  }

 private:
  Answer answer_;
  shared::AnswerRoom room_;
  Writer out_;
};

}  // namespace

Status JobSubmit(Call& call) {
  api::Arguments arguments;
  TOCSIN_TRY(Read(call, arguments));
  TOCSIN_TRY(FinishJob(Wire::kResp, arguments));
  TOCSIN_TRY(shared::CheckRestores(call.session.grant(), call.topic(), {&arguments.job, 1}));
  const Context& context = ContextOf(call);
  TOCSIN_TRY(Validate(arguments.job, context.service.limits(), context.clock.Now()));
  SubmitRun& run = call.session.pipeline().Open<SubmitRun>(call, 1);
  run.parts.push_back({.own_id = arguments.job.id});
  run.request.jobs.push_back(std::move(arguments.job));
  return {};
}

Status JobMsubmit(Call& call) {
  if (!SameWord(call.args[1], "DELAY") && !SameWord(call.args[1], "AT")) {
    return FailField(Code::kInvalidArgument, "DELAY", "DELAY ms or AT ms has to stand behind the topic");
  }
  api::Arguments arguments;
  TOCSIN_TRY(ReadWords(call.args.subspan(1, 2), VerbOf(api::VerbId::kSubmitJobs).fields, arguments));
  TOCSIN_TRY(FinishJob(Wire::kResp, arguments));
  const Values payloads = call.args.subspan(3);
  TOCSIN_TRY(CheckBatch(call, "payloads", payloads.size()));
  NewJob& job = arguments.job;
  const Context& context = ContextOf(call);
  const Moment now = context.clock.Now();
  for (const std::string_view payload : payloads) {
    job.payload = payload;
    TOCSIN_TRY(Validate(job, context.service.limits(), now));
  }
  SubmitRun& run = call.session.pipeline().Open<SubmitRun>(call, payloads.size());
  run.parts.push_back({.items = payloads.size(), .many = true});
  run.request.jobs.reserve(run.request.jobs.size() + payloads.size());
  for (const std::string_view payload : payloads) run.request.jobs.emplace_back(job).payload = payload;
  return {};
}

Status JobAmend(Call& call) {
  api::Arguments arguments;
  TOCSIN_TRY(Read(call, arguments));
  TOCSIN_ASSIGN(const Amendment amendment, AmendmentOf(Wire::kResp, arguments));
  return Amend(call, amendment);
}

Status JobCancel(Call& call) { return AmendAs(call, AmendKind::kCancel); }
Status JobFire(Call& call) { return AmendAs(call, AmendKind::kFire); }

Status JobCount(Call& call) {
  api::Arguments arguments;
  TOCSIN_TRY(Read(call, arguments));
  const CountEvent event = EventOf(arguments);
  TOCSIN_TRY(Validate(event));
  call.session.pipeline().Open<CountRun>(call, 1).request.events.push_back(event);
  return {};
}

Status JobAck(Call& call) { return Settle(call, SettleKind::kAck); }
Status JobNack(Call& call) { return Settle(call, SettleKind::kNack); }
Status JobExtend(Call& call) { return Settle(call, SettleKind::kExtend); }

/// The reply to a reserve, while it is made.
struct Delivery {
  Answer answer;
  std::shared_ptr<Session> session;
  std::string topic;
  std::shared_ptr<shared::AnswerRoom> room;  // for the jobs and the reply
  JobBatch jobs;
  size_t bytes;  // of the reply, at most
  std::string text = {};
  size_t next = 0;
};

void Deliver(const std::shared_ptr<Delivery>& delivery) {
  Answer& answer = delivery->answer;
  Session& session = *delivery->session;
  Server& server = session.server();
  const JobBatch& jobs = delivery->jobs;
  if (!answer.Wanted()) {
    server.context().service.Release(server.loop(), LeasesOf(delivery->topic, jobs));
    return answer.Done();
  }
  Writer writer = answer.WriterTo(delivery->text);
  if (!WriteDelivered(writer, jobs, delivery->next)) {
    return server.loop().Post(session.Handler([delivery] { Deliver(delivery); }));
  }
  session.Unpark();
  if (!jobs.jobs.empty()) {  // otherwise a claim that was cancelled may still be using the room
    session.TakeRoom(*delivery->room, delivery->bytes);
    answer.HandOut(LeasesOf(delivery->topic, jobs));
  }
  answer.Put(std::move(delivery->text));
  answer.Done();
}

Status JobReserve(Call& call) {
  api::Arguments arguments;
  TOCSIN_TRY(Read(call, arguments));
  // Most often the client has gone altogether, and nobody would settle the jobs.
  if (call.session.half_closed()) {
    Reply(call).Array(0);
    return {};
  }
  const auto room = call.session.NewSharedRoom();
  ReserveRequest request{.topic = std::string(call.topic()),
                         .max = static_cast<size_t>(arguments.max.value_or(1)),
                         .wait = Millis(arguments.wait_ms.value_or(0)),
                         .lease = Millis(arguments.lease_ms.value_or(0)),
                         .consumer = std::string(arguments.consumer),
                         .room = room};
  if (request.consumer.empty()) request.consumer = call.session.name();
  if (request.consumer.empty()) request.consumer = call.session.Peer();
  auto deliver = [session = call.session.Share(), topic = request.topic, room](Answer& answer,
                                                                               Result<JobBatch> result) {
    session->Unpark();
    if (!result) return answer.Fail(result.error());
    const size_t bytes = shared::BytesMax(*result);
    const auto delivery =
        std::make_shared<Delivery>(std::move(answer), session, topic, room, std::move(*result), bytes);
    // A large text must not be copied while it grows.
    if (bytes > net::Budget::kSmallBytes) delivery->text.reserve(bytes);
    Deliver(delivery);
  };
  Server& server = call.session.server();
  const ReserveId id = server.context().service.Reserve(
      server.loop(), std::move(request), net::GuardedAnswer(call.session.pipeline().Hold(call), std::move(deliver)));
  call.session.Park(id, call.topic());
  return {};
}

Status RunShared(Call& call) {
  const Context& context = ContextOf(call);
  const api::Verb& verb = *call.command.verb;
  const auth::Grant* const grant = call.session.grant();
  shared::Call shared{.service = context.service,
                      .loop = call.session.server().loop(),
                      .clock = context.clock,
                      .virtual_clock = context.virtual_clock,
                      .node = context.node,
                      .prefix = grant != nullptr ? grant->prefix : std::string(),
                      .sees_payloads = grant == nullptr || SeesPayloads(*grant, verb.access),
                      .sees_whole_urls = grant == nullptr || grant->scopes.Has(auth::Scope::kAdmin),
                      .bytes = call.session.bytes()};
  if (verb.HasTopic()) shared.topic = call.topic();
  const Values rest = call.args.subspan(verb.HasTopic() ? 1 : 0);
  if (verb.takes_settings) {
    TOCSIN_ASSIGN(shared.change, ReadSettings(rest));
  } else {
    TOCSIN_TRY(ReadArguments(rest, verb, shared.arguments));
  }
  shared.reply = std::make_unique<RespReply>(call.session.pipeline().Hold(call));
  AddAudit(shared, verb, grant, call.session, "resp");
  shared::HandlerOf(verb.id)(std::move(shared));
  return {};
}

}  // namespace tocsin::resp
