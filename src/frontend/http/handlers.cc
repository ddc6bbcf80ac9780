// The handlers of all routes: decode, call the service, encode. No queue logic.
#include "base/result.h"
#include "frontend/http/decode.h"
#include "frontend/http/encode.h"
#include "frontend/http/event_stream.h"
#include "frontend/http/gzip.h"
#include "frontend/http/json_writer.h"
#include "frontend/http/login.h"
#include "frontend/http/server.h"
#include "frontend/http/session.h"
#include "frontend/http/ui.h"
#include "frontend/shared/audit.h"
#include "frontend/shared/restore_access.h"
#include "model/names.h"

namespace tocsin::http {
namespace {

using api::VerbId;

Result<std::shared_ptr<Document>> OptionalBody(Call& call) {
  return call.body.empty() ? Document::Parse(call.parser, "{}") : call.Parse();
}

}  // namespace

Result<Decoded> DecodeCall(Call& call) {
  struct Kept {
    std::vector<std::string> params;
    Query query;
    std::shared_ptr<Document> document;
  };
  TOCSIN_ASSIGN(auto document, OptionalBody(call));
  const auto kept = std::make_shared<Kept>(std::move(call.params), std::move(call.query), std::move(document));
  Decoded decoded{.bytes = kept};
  if (call.verb->HasTopic()) decoded.topic = kept->params[0];
  if (call.verb->HasId()) decoded.arguments.job.id = kept->params[1];
  TOCSIN_TRY(DecodeQuery(kept->query, call.verb->fields, decoded.arguments));
  TOCSIN_TRY(DecodeBody(*kept->document, kept->document->root(), call.verb->fields, decoded));
  TOCSIN_TRY(CheckTogether(call.verb->fields, api::Wire::kJson, decoded.arguments));
  return decoded;
}

namespace {

// Submitting and changing jobs.

/// 201 if anything was stored; otherwise the status of the first refusal, so that a client that looks at the status
/// alone never takes a refused job for a stored one.
int StatusOf(const std::vector<Submitted>& jobs) {
  if (std::ranges::any_of(jobs, IsStored, &Submitted::outcome)) return 201;
  return RowOf(CodeOf(jobs.front().outcome)).http;
}

Result<SubmitRequest> SubmitOf(Call& call) {
  if (call.parsed && call.parsed->submit) {
    TOCSIN_ASSIGN(auto request, std::move(*call.parsed->submit));
    request.topic = std::move(call.params[0]);
    return request;
  }
  TOCSIN_ASSIGN(auto document, call.Parse());
  return DecodeSubmit(std::move(call.params[0]), std::move(document), call.context.service.limits().batch);
}

Status SubmitJobs(Call& call) {
  TOCSIN_ASSIGN(auto request, SubmitOf(call));
  TOCSIN_TRY(shared::CheckRestores(call.grant, request.topic, request.jobs));
  std::vector<std::string_view> own_ids;
  own_ids.reserve(request.jobs.size());
  for (const NewJob& job : request.jobs) own_ids.push_back(job.id);
  // Now, while nothing is done yet: an answer that finds no room later would hide what is stored.
  TOCSIN_TRY(call.answer.MakeRoom(SubmittedBytesMax(own_ids)));
  auto send = [ids = std::move(own_ids), bytes = request.bytes](Answer& answer, const auto& jobs) {
    answer.Send({.status = StatusOf(jobs), .body = EncodeSubmitted(jobs, ids)});
  };
  if (call.grant != nullptr) request.prefix = call.grant->prefix;
  call.context.service.Submit(call.loop, std::move(request), call.answer.Then(std::move(send)));
  return {};
}

/// `done`: what kDone is called in the answer.
Status Amend(Call& call, Decoded decoded, const Amendment& amendment, std::string_view done) {
  AmendRequest request{.topic = std::move(decoded.topic), .amendments = {amendment}, .bytes = std::move(decoded.bytes)};
  auto send = [done](Answer& answer, const auto& amended) {
    if (const auto refusal = RefusalOf(amended.front().outcome)) return answer.Fail(*refusal);
    answer.Send({.body = EncodeAmended(amended.front(), done)});
  };
  call.context.service.Amend(call.loop, std::move(request), call.answer.Then(std::move(send)));
  return {};
}

Status AmendAs(Call& call, AmendKind kind, std::string_view done) {
  TOCSIN_ASSIGN(Decoded decoded, DecodeCall(call));
  const Amendment amendment{.job = JobOf(decoded.arguments), .kind = kind};
  return Amend(call, std::move(decoded), amendment, done);
}

Status AmendJob(Call& call) {
  TOCSIN_ASSIGN(Decoded decoded, DecodeCall(call));
  TOCSIN_ASSIGN(const Amendment amendment, AmendmentOf(api::Wire::kJson, decoded.arguments));
  return Amend(call, std::move(decoded), amendment, "amended");
}

Status CancelJob(Call& call) { return AmendAs(call, AmendKind::kCancel, "cancelled"); }

Status FireJob(Call& call) { return AmendAs(call, AmendKind::kFire, "fired"); }

Status CountJob(Call& call) {
  TOCSIN_ASSIGN(Decoded decoded, DecodeCall(call));
  CountRequest request{
      .topic = std::move(decoded.topic), .events = {EventOf(decoded.arguments)}, .bytes = std::move(decoded.bytes)};
  auto send = [](Answer& answer, const auto& counted) {
    if (const auto refusal = RefusalOf(counted.front().outcome)) return answer.Fail(*refusal);
    answer.Send({.body = EncodeCounted(counted.front())});
  };
  call.context.service.Count(call.loop, std::move(request), call.answer.Then(std::move(send)));
  return {};
}

// Reserve, ack, nack, extend.

/// The answer to a reserve, while it is made.
struct Delivery {
  Answer answer;
  const Context& context;
  net::AsioLoop& loop;
  std::string topic;
  std::shared_ptr<shared::AnswerRoom> room;  // for the jobs and the answer
  JobBatch jobs;
  JsonWriter body = {};
  size_t next = 0;
};

void Deliver(const std::shared_ptr<Delivery>& delivery) {
  Answer& answer = delivery->answer;
  const JobBatch& jobs = delivery->jobs;
  if (!answer.Wanted()) return delivery->context.service.Release(delivery->loop, LeasesOf(delivery->topic, jobs));
  if (!EncodeDelivered(delivery->body, jobs, delivery->next)) {
    answer.BeginSteps();
    return delivery->loop.Post(answer.connection()->Handler([delivery] { Deliver(delivery); }));
  }
  if (!jobs.jobs.empty()) answer.TakeRoom(*delivery->room);  // otherwise a claim that was cancelled may be using it
  answer.Send({.body = delivery->body.Take(), .leases = LeasesOf(delivery->topic, jobs)});
}

Status ReserveJobs(Call& call) {
  TOCSIN_ASSIGN(const Decoded decoded, DecodeCall(call));
  const auto room = call.session.NewSharedRoom();
  ReserveRequest request{.topic = decoded.topic,
                         .max = static_cast<size_t>(decoded.arguments.max.value_or(1)),
                         .wait = Millis(decoded.arguments.wait_ms.value_or(0)),
                         .lease = Millis(decoded.arguments.lease_ms.value_or(0)),
                         .consumer = std::string(decoded.arguments.consumer),
                         .room = room};
  if (request.consumer.empty()) request.consumer = call.session.Peer();
  auto deliver = [topic = decoded.topic, room, &context = call.context, &loop = call.loop](Answer& answer,
                                                                                           JobBatch& jobs) {
    Deliver(std::make_shared<Delivery>(std::move(answer), context, loop, topic, room, std::move(jobs)));
  };
  call.session.Park(call.context.service.Reserve(call.loop, std::move(request), call.answer.Then(std::move(deliver))));
  return {};
}

template <SettleKind kind>
Status SettleJobs(Call& call) {
  TOCSIN_ASSIGN(auto document, call.Parse());
  TOCSIN_ASSIGN(auto request, DecodeSettle(*call.verb, kind, std::move(call.params[0]), std::move(document),
                                           call.context.service.limits().batch));
  std::vector<Token> tokens;
  tokens.reserve(request.settlements.size());
  for (const Settlement& settlement : request.settlements) tokens.push_back(settlement.token);
  TOCSIN_TRY(call.answer.MakeRoom(SettledBytesMax(tokens.size())));
  auto send = [tokens = std::move(tokens)](Answer& answer, const auto& outcomes) {
    answer.Send({.body = EncodeSettled(tokens, outcomes)});
  };
  call.context.service.Settle(call.loop, std::move(request), call.answer.Then(std::move(send)));
  return {};
}

// The node itself: health, figures, metrics, and the description of the API.

Status ShowHealth(Call& call) {
  call.answer.Send({.body = "{\"status\":\"ok\"}"});
  return {};
}

/// A person gets the dashboard.
Status ShowRoot(Call& call) {
  if (!UiFiles().empty() && TakesHtml(call.session.FieldOf(boost::beast::http::field::accept))) {
    call.answer.Send(RedirectToUi());
    return {};
  }
  constexpr VerbId kLinked[] = {VerbId::kListTopics, VerbId::kShowStats, VerbId::kShowCluster, VerbId::kShowOpenApi,
                                VerbId::kShowHealth, VerbId::kShowReady, VerbId::kShowMetrics};
  JsonWriter out;
  out.Object(3);
  out.Member("name", std::string_view("tocsin"));
  out.Member("version", std::string_view(call.context.node.version));
  out.Name("links");
  out.Object(std::size(kLinked));
  for (const VerbId id : kLinked) out.Member(VerbOf(id).name, VerbOf(id).Path());
  out.EndObject();
  out.EndObject();
  call.answer.Send({.body = out.Take(), .fields = "Vary: Accept\r\n"});
  return {};
}

Status ShowReady(Call& call) {
  TOCSIN_TRY(call.context.service.Ready());
  call.answer.Send({.body = "{\"status\":\"ready\"}"});
  return {};
}

/// A scrape that is sent while it is made.
struct Scraping {
  Loop& loop;
  Worker& worker;
  metrics::Registry& metrics;
  std::unique_ptr<PackStream> gzip = {};  // null: not compressed
  bool begun = false;
  std::optional<metrics::Registry::Rendering> rendering = {};
  Piece piece = {};  // the last one
};

// That wait for their beginning, whoever runs: it takes long, and Prometheus asks only every few seconds.
constexpr size_t kScrapesMax = 4;

void NextPiece(const std::shared_ptr<Scraping>& scraping, Worker::Done done) {
  const bool begins = !scraping->begun;
  scraping->begun = true;
  scraping->worker.Run(
      scraping->loop,
      [scraping] {
        Piece piece;
        try {
          if (!scraping->rendering) scraping->rendering.emplace(scraping->metrics);
          piece.last = !scraping->rendering->Next(piece.bytes);
          if (scraping->gzip) piece.bytes = scraping->gzip->Pack(piece.bytes, piece.last);
        } catch (...) {
          piece.failure = std::current_exception();
        }
        scraping->piece = std::move(piece);
      },
      std::move(done), begins ? kScrapesMax : SIZE_MAX);
}

Status ShowMetrics(Call& call) {
  const auto scraping = std::make_shared<Scraping>(call.loop, call.context.scraper, call.context.metrics);
  // Its memory is charged with the first piece: the figures that a scrape shows do not contain what it takes itself.
  if (call.session.TakesGzip()) scraping->gzip = std::make_unique<PackStream>();
  if (scraping->gzip && !scraping->gzip->usable()) scraping->gzip.reset();
  auto send = [scraping](Answer& answer, const Status& status) {
    if (!status) return answer.Fail(status.error());
    if (scraping->piece.failure) std::rethrow_exception(scraping->piece.failure);
    Response response{.body = std::move(scraping->piece.bytes),
                      .content_type = "text/plain; version=0.0.4",
                      .gzipped = scraping->gzip != nullptr};
    if (!scraping->piece.last) {
      response.more = [scraping](TakePiece take) {
        NextPiece(scraping,
                  [scraping, take = std::move(take)](const Status&) mutable { take(std::move(scraping->piece)); });
      };
      response.more_bytes = scraping->gzip ? kPackingBytes : 0;
    }
    answer.Send(std::move(response));
  };
  NextPiece(scraping, net::GuardedAnswer(std::move(call.answer), std::move(send)));
  return {};
}

Status ShowOpenApi(Call& call) {
  call.answer.Send({.body = OpenApiDocument()});
  return {};
}

Status ShowStats(Call& call) {
  const Context& context = call.context;
  auto send = [&context](Answer& answer, const Totals& totals) {
    const auto uptime = context.clock.IoNow() - context.node.started;
    answer.Send({.body = EncodeStats({.version = context.node.version,
                                      .now_ms = ToMs(context.clock.Now().utc),
                                      .uptime_ms = std::chrono::duration_cast<Millis>(uptime).count(),
                                      .shards = context.node.shards,
                                      .connections = context.node.connections->load(std::memory_order_relaxed)},
                                     totals)});
  };
  context.service.Total(call.loop, call.answer.Then(std::move(send)));
  return {};
}

// Calls whose handlers are the same on every door.

class JsonReply final : public shared::Reply {
 public:
  explicit JsonReply(Answer answer) : answer_(std::move(answer)), room_(answer_.NewRoom()) {}

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
  void Fail(const Error& error) override { answer_.Fail(OnTheWire(error)); }
  void Missing(const Error& error) override { Fail(error); }
  void Done(std::string_view outcome) override {
    BeginSingle("outcome").Text(outcome);
    Send(false);
  }
  void Became(std::string_view outcome) override { Done(outcome); }
  shared::ValueWriter& Begin() override { return out_; }
  shared::ValueWriter& BeginSingle(std::string_view name) override {
    out_.Object(1);
    out_.Name(name);
    open_ = true;
    return out_;
  }
  shared::ValueWriter& BeginPage(std::string_view name, std::string_view cursor, size_t items) override {
    BeginSingle(name).Array(items);
    is_page_ = true;
    cursor_ = cursor;
    return out_;
  }
  void Send(bool created) override {
    if (is_page_) out_.EndArray();
    if (!cursor_.empty()) out_.Member("cursor", std::string_view(cursor_));
    if (open_) out_.EndObject();
    answer_.Send({.status = created ? 201 : 200, .body = out_.Take()});
  }

 private:
  Answer answer_;
  shared::AnswerRoom room_;
  JsonWriter out_;
  bool open_ = false;  // an object is to be closed
  bool is_page_ = false;
  std::string cursor_;
};

Status RunShared(Call& call) {
  const Context& context = call.context;
  shared::Call shared{.service = context.service,
                      .loop = call.loop,
                      .clock = context.clock,
                      .virtual_clock = context.virtual_clock,
                      .node = context.node,
                      .prefix = call.grant != nullptr ? call.grant->prefix : std::string(),
                      .sees_payloads = call.grant == nullptr || SeesPayloads(*call.grant, call.verb->access),
                      .sees_whole_urls = call.grant == nullptr || call.grant->scopes.Has(auth::Scope::kAdmin)};
  if (call.verb->takes_settings) {
    TOCSIN_ASSIGN(const auto document, OptionalBody(call));
    TOCSIN_ASSIGN(shared.change, DecodeTopicChange(*document));
    shared.topic = std::move(call.params[0]);
  } else {
    TOCSIN_ASSIGN(Decoded decoded, DecodeCall(call));
    shared.arguments = std::move(decoded.arguments);
    shared.topic = std::move(decoded.topic);
    shared.bytes = std::move(decoded.bytes);
  }
  shared.reply = std::make_unique<JsonReply>(std::move(call.answer));
  AddAudit(shared, *call.verb, call.grant, call.session, "http");
  shared::HandlerOf(call.verb->id)(std::move(shared));
  return {};
}

/// Runs a handler, and answers with its error if it returns one.
template <Status (*handler)(Call&)>
void Run(Call& call) {
  if (const Status status = handler(call); !status) call.answer.Fail(status.error());
}

/// What is not here is served by a shared handler.
constexpr std::pair<VerbId, Handler> kOwnHandlers[] = {
    {VerbId::kSubmitJobs, Run<SubmitJobs>},
    {VerbId::kReserveJobs, Run<ReserveJobs>},
    {VerbId::kAckJobs, Run<SettleJobs<SettleKind::kAck>>},
    {VerbId::kNackJobs, Run<SettleJobs<SettleKind::kNack>>},
    {VerbId::kExtendJobs, Run<SettleJobs<SettleKind::kExtend>>},
    {VerbId::kCancelJob, Run<CancelJob>},
    {VerbId::kAmendJob, Run<AmendJob>},
    {VerbId::kFireJob, Run<FireJob>},
    {VerbId::kCountJob, Run<CountJob>},
    {VerbId::kShowStats, Run<ShowStats>},
    {VerbId::kShowOpenApi, Run<ShowOpenApi>},
    {VerbId::kShowRoot, Run<ShowRoot>},
    {VerbId::kShowHealth, Run<ShowHealth>},
    {VerbId::kShowReady, Run<ShowReady>},
    {VerbId::kShowMetrics, Run<ShowMetrics>},
    {VerbId::kBeginSession, Run<BeginSession>},
    {VerbId::kShowSession, Run<ShowSession>},
    {VerbId::kEndSession, Run<EndSession>},
    {VerbId::kShowEvents, Run<ShowEvents>},
};

Handler HandlerOf(VerbId verb) {
  const auto* const own = std::ranges::find(kOwnHandlers, verb, &std::pair<VerbId, Handler>::first);
  if (own != std::end(kOwnHandlers)) return own->second;
  TOCSIN_CHECK(shared::HandlerOf(verb) != nullptr);
  return Run<RunShared>;
}

}  // namespace

Route RouteOf(VerbId id) {
  const api::Verb& verb = VerbOf(id);
  std::vector<std::string_view> query;
  for (const api::Field& field : verb.fields) {
    if (verb.InQuery(field)) query.push_back(field.name);
  }
  return {boost::beast::http::string_to_verb(verb.Method()),
          verb.Path(),
          verb.access,
          HandlerOf(id),
          std::move(query),
          &verb};
}

Router MakeRouter(bool virtual_clock) {
  std::vector<Route> routes;
  for (const api::Verb& verb : api::Verbs()) {
    if (virtual_clock || !verb.needs_virtual_clock) routes.push_back(RouteOf(verb.id));
  }
  std::ranges::move(UiRoutes(), std::back_inserter(routes));
  return Router(std::move(routes));
}

}  // namespace tocsin::http
