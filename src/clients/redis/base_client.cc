#include "clients/redis/base_client.h"

namespace tocsin::redis {
namespace {

// Between two attempts at a command that a server could not run yet; doubled each time. No jitter: commands that fail
// together keep their order.
constexpr Millis kRetryMin{10};
constexpr Millis kRetryMax{200};
constexpr int kDoublingsMax = 5;

/// Memory of a request, without its arguments.
constexpr size_t kRequestBytes = sizeof(Request) + 64;

size_t BytesOf(const Request& request) { return request.command.bytes() + kRequestBytes; }

}  // namespace

BaseClient::BaseClient(std::unique_ptr<Context> context)
    : context_(std::move(context)),
      subscription_(*context_, {context_->options.username, context_->options.password},
                    {.where = [this](Link& link) { WhereToListen(link); }, .back = [this] { NotifyUp(); }}),
      retry_(context_->io, [this] { RetryUpTo(std::chrono::steady_clock::now()); }),
      refuse_(context_->io, [this] { AnswerRefused(); }),
      notify_(context_->io, [this] { RunUps(); }) {}

void BaseClient::Close() {
  if (std::exchange(closed_, true)) return;
  Requests sent;
  Requests unsent;
  CloseLinks(sent, unsent);
  subscription_.Close(sent, unsent);
  for (auto& [at, request] : retries_) unsent.push_back(std::move(request));
  for (auto& [request, why] : refused_) unsent.push_back(std::move(request));
  retries_.clear();
  refused_.clear();
  retry_.Cancel();
  Failed(std::move(unsent), Error{Code::kShuttingDown, "not sent: the client is closed", {}});
  Failed(std::move(sent),
         Error{Code::kShuttingDown, "the client is closed; whether the command was carried out is unknown", {}});
}

RequestPtr BaseClient::MakeRequest(Command command, Answer answer) {
  auto request = std::make_unique<Request>(Request{
      .command = std::move(command),
      .answer = std::move(answer),
      .deadline = std::chrono::steady_clock::now() + context_->options.command_timeout,
  });
  pending_bytes_ += BytesOf(*request);
  return request;
}

void BaseClient::Call(Command command, Answer answer) {
  if (closed_) {
    // Does not use this object, which may be destroyed by then.
    return boost::asio::post(context_->io, [answer = std::move(answer)]() mutable {
      answer(Fail(Code::kShuttingDown, "not sent: the client is closed"));
    });
  }
  RequestPtr request = MakeRequest(std::move(command), std::move(answer));
  const size_t limit = context_->options.pending_bytes_max;
  if (pending_bytes_ > limit) {
    return Refuse(
        std::move(request),
        Error{Code::kOverloaded, fmt::format("not sent: over {} bytes of commands are under way", limit), {}});
  }
  Route(std::move(request));
}

void BaseClient::Finish(RequestPtr request, Result<Reply> result) {
  pending_bytes_ -= BytesOf(*request);
  const Figures& figures = context_->figures;
  const auto& counter = !result ? figures.failed : result->kind() == Kind::kError ? figures.refused : figures.answered;
  counter->Add();
  Answer answer = std::move(request->answer);
  request.reset();
  answer(std::move(result));
}

void BaseClient::Failed(Requests requests, const Error& why) {
  for (RequestPtr& request : requests) {
    Error error = why;
    if (!request->trouble.empty()) error.message = fmt::format("{} (before: {})", why.message, request->trouble);
    Finish(std::move(request), std::unexpected(std::move(error)));
  }
}

void BaseClient::Answered(CommandLink& link, RequestPtr request, Reply reply, bool current) {
  switch (Judge(reply)) {
    case Verdict::kAnswer:
      break;
    case Verdict::kMoved:
    case Verdict::kAsk:
      return Redirected(link, std::move(request), std::move(reply));
    case Verdict::kDemoted:
      if (current) Demoted(link);
      return Later(std::move(request), reply.root().text());
    case Verdict::kLater:
      if (current) Postponed(link, reply.root().text());
      return Later(std::move(request), reply.root().text());
    case Verdict::kNoScript:
      if (request->command.script() == nullptr || request->whole_script) break;
      request->whole_script = true;
      return link.Send(std::move(request));
  }
  Finish(std::move(request), std::move(reply));
}

void BaseClient::Later(RequestPtr request, std::string_view why) {
  request->trouble = why;
  request->redirects = 0;
  const Millis pause = std::min(kRetryMin * (1 << std::min(request->tries++, kDoublingsMax)), kRetryMax);
  const TimePoint at = std::chrono::steady_clock::now() + pause;
  if (at >= request->deadline) {
    return Refuse(std::move(request), Error{Code::kUnavailable, fmt::format("not sent: {}", why), {}});
  }
  retry_.SetEarlier(at);
  retries_.emplace(at, std::move(request));
}

void BaseClient::RetryUpTo(TimePoint time) {
  // Take all first: Route may put some of them back.
  Requests due;
  while (!retries_.empty() && retries_.begin()->first <= time) {
    due.push_back(std::move(retries_.begin()->second));
    retries_.erase(retries_.begin());
  }
  if (!retries_.empty()) retry_.Set(retries_.begin()->first);
  for (RequestPtr& request : due) Route(std::move(request));
}

void BaseClient::Refuse(RequestPtr request, Error why) {
  refused_.emplace_back(std::move(request), std::move(why));
  refuse_.Schedule();
}

void BaseClient::AnswerRefused() {
  for (auto& [request, why] : std::exchange(refused_, {})) Finish(std::move(request), std::unexpected(std::move(why)));
}

void BaseClient::RunUps() {
  // By index: a handler may add another one.
  for (size_t i = 0; i < ups_.size() && !closed_; ++i) ups_[i]();
}

}  // namespace tocsin::redis
