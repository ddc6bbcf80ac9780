#include "frontend/shared/audit.h"

#include <optional>
#include <utility>
#include <vector>

#include "base/audit.h"
#include "base/line_limit.h"
#include "base/text.h"
#include "model/names.h"

namespace tocsin::shared {
namespace {

using auth::Access;

bool IsAudited(const api::Verb& verb) {
  return verb.Changes() && (verb.access == Access::kTopicAdmin || verb.access == Access::kNodeAdmin);
}

/// What the line says about the call itself.
struct Act {
  const api::Verb& verb;
  std::string topic;
  std::string id = {};    // of a job
  std::string what = {};  // further words of the call
};

using Numbers = std::vector<std::pair<std::string_view, int64_t>>;

void WriteLine(const Act& act, const Caller& caller, const Numbers& numbers, std::string_view outcome) {
  std::vector<LogField> fields{
      {"who", caller.who}, {"from", caller.from}, {"door", caller.door}, {"act", act.verb.name}};
  if (!act.topic.empty()) fields.push_back({"topic", act.topic});
  if (!act.id.empty()) fields.push_back({"id", act.id});
  if (!act.what.empty()) fields.push_back({"what", act.what});
  for (const auto& [name, number] : numbers) fields.push_back({name, number});
  fields.push_back({"outcome", outcome});
  Audit(fields);
}

/// The names of the settings, and values that are numbers: a text may be a URL with a password in it.
std::string TextOf(const TopicChange& change) {
  std::string text;
  const auto add = [&text](std::string_view name) { text.append(text.empty() ? "" : " ").append(name); };
  for (const auto& [setting, value] : change.settings) add(fmt::format("{}={}", setting->name, value));
  if (!change.delivery) return text;
  if (change.delivery->sink) add(fmt::format("sink={}", Shown(*change.delivery->sink)));
  for (const auto& [name, value] : change.delivery->settings) add(Shown(name));
  return text;
}

/// The names of the fields that a selector has, and values that are times, states or numbers: the other texts may be
/// parts of payloads.
std::string TextOf(const Selector& what) {
  std::string text;
  const auto add = [&text](std::string_view name) { text.append(" ").append(name); };
  const auto range = [&](std::string_view name, const TimeRange& times) {
    if (times.from) add(fmt::format("{}_from_ms={}", name, ToMs(*times.from)));
    if (times.to) add(fmt::format("{}_to_ms={}", name, ToMs(*times.to)));
  };
  std::string states;
  const auto has = [&](State state) { return !what.states.All() && what.states.Has(state, kNever, Time{}); };
  for (size_t i = 0; i < std::size(kStateNames); ++i) {
    if (has(static_cast<State>(i))) states.append(states.empty() ? "" : ",").append(kStateNames[i]);
  }
  if (!what.states.All() && !has(State::kScheduled) && what.states.MayHave(State::kScheduled)) {
    states.append(states.empty() ? "" : ",").append(kSelectStateNames[std::size(kStateNames)]);
  }
  if (!states.empty()) add("state=" + states);
  const std::pair<std::string_view, bool> texts[] = {{"ids", !what.ids.empty()},
                                                     {"id_prefix", !what.id_prefix.empty()},
                                                     {"key", !what.key.empty()},
                                                     {"header", !what.header.empty()},
                                                     {"payload", !what.payload.empty()},
                                                     {"reason", !what.reason.empty()},
                                                     {"reason_is", !what.reason_is.empty()},
                                                     {"holder", !what.holder.empty()}};
  for (const auto& [name, given] : texts) {
    if (given) add(name);
  }
  range("due", what.due);
  range("created", what.created);
  range("died", what.died);
  if (what.attempts_min) add(fmt::format("attempts_min={}", *what.attempts_min));
  if (what.attempts_max) add(fmt::format("attempts_max={}", *what.attempts_max));
  return text;
}

/// Which jobs an operation is about, and what it does to them.
std::string OperationText(const api::Arguments& asked) {
  std::string text = fmt::format("{}{}{}{}", asked.action, asked.dry_run ? " dry_run" : "", asked.all ? " all" : "",
                                 TextOf(asked.where));
  const std::pair<std::string_view, std::optional<int64_t>> numbers[] = {{"to_ms", asked.to_ms},
                                                                         {"over_ms", asked.over_ms},
                                                                         {"shift_ms", asked.shift_ms},
                                                                         {"max_attempts", asked.max_attempts},
                                                                         {"rate", asked.rate}};
  for (const auto& [name, number] : numbers) {
    if (number) text += fmt::format(" {}={}", name, *number);
  }
  return text;
}

Act ActOf(const Call& call, const api::Verb& verb) {
  Act act{.verb = verb, .topic = Shown(call.topic), .what = TextOf(call.change)};
  if (verb.HasId()) act.id = Shown(call.arguments.job.id);
  if (call.arguments.dead) act.what = "dead";
  if (!call.arguments.action.empty()) act.what = OperationText(call.arguments);
  if (call.arguments.advance_ms) act.what = fmt::format("{} ms", *call.arguments.advance_ms);
  if (call.arguments.advance_to_ms) act.what = fmt::format("to {} ms", *call.arguments.advance_to_ms);
  return act;
}

/// Passes everything on.
class AuditedReply final : public Reply {
 public:
  AuditedReply(std::unique_ptr<Reply> reply, Act act, Caller caller)
      : reply_(std::move(reply)), act_(std::move(act)), caller_(std::move(caller)) {}
  ~AuditedReply() override { End("unanswered"); }

  std::shared_ptr<net::Connection> connection() const override { return reply_->connection(); }
  Status MakeRoom(size_t bytes) override { return reply_->MakeRoom(bytes); }
  Status MakeRoomForWhole(size_t bytes) override { return reply_->MakeRoomForWhole(bytes); }
  JobRoom& room() override { return reply_->room(); }
  void Fail(const Error& error) override {
    End(RowOf(error.code).name);
    reply_->Fail(error);
  }
  void Missing(const Error& error) override {
    End(RowOf(error.code).name);
    reply_->Missing(error);
  }
  void Done(std::string_view outcome) override {
    End(outcome);
    reply_->Done(outcome);
  }
  void Became(std::string_view outcome) override {
    End(outcome);
    reply_->Became(outcome);
  }
  ValueWriter& Begin() override { return reply_->Begin(); }
  ValueWriter& BeginSingle(std::string_view name) override { return reply_->BeginSingle(name); }
  ValueWriter& BeginPage(std::string_view name, std::string_view cursor, size_t items) override {
    return reply_->BeginPage(name, cursor, items);
  }
  void Send(bool created) override {
    End(created ? "created" : "ok");
    reply_->Send(created);
  }
  void Note(std::string_view name, int64_t number) override { numbers_.emplace_back(name, number); }

 private:
  void End(std::string_view outcome) {
    if (!std::exchange(ended_, true)) WriteLine(act_, caller_, numbers_, outcome);
  }

  const std::unique_ptr<Reply> reply_;
  const Act act_;
  const Caller caller_;
  Numbers numbers_;
  bool ended_ = false;
};

void LogStranger(LineLimit& limit, std::string_view event, const net::Connection& connection, std::string_view door,
                 std::string_view error, IoTime now) {
  const auto left_out = limit.Take(now);
  if (!left_out) return;
  const std::string from = connection.Peer();
  const LogField fields[] = {{"from", from}, {"door", door}, {"error", error}, {"left_out", *left_out}};
  LogEvent(LogLevel::kWarn, event, fields);
}

}  // namespace

Caller CallerOf(const auth::Grant* grant, const net::Connection& connection, std::string_view door) {
  return {grant != nullptr ? Shown(grant->name) : "-", connection.Peer(), door};
}

void AddAudit(Call& call, const api::Verb& verb, const auth::Grant* grant, const net::Connection& connection,
              std::string_view door) {
  if (!IsAudited(verb)) return;
  if (verb.id == api::VerbId::kOperate && !call.arguments.dry_run) {
    call.audit_end = [act = ActOf(call, verb),
                      caller = CallerOf(grant, connection, door)](const OperationReport& report) {
      Numbers numbers;
      for (const auto& [outcome, jobs] : report.outcomes) numbers.emplace_back(outcome, static_cast<int64_t>(jobs));
      WriteLine(act, caller, numbers,
                report.state == OperationState::kDone      ? "ended"
                : report.state == OperationState::kStopped ? "stopped"
                                                           : "failed");
    };
  }
  call.reply =
      std::make_unique<AuditedReply>(std::move(call.reply), ActOf(call, verb), CallerOf(grant, connection, door));
}

void AuditRefusal(const api::Verb* verb, std::string_view topic, const Caller& caller, const Error& error, IoTime now) {
  if (verb == nullptr || !IsAudited(*verb) || error.code != Code::kForbidden) return;
  static LineLimit limit(10);
  const auto left_out = limit.Take(now);
  if (!left_out) return;
  Numbers numbers;
  if (*left_out > 0) numbers.emplace_back("left_out", *left_out);
  const Act act{.verb = *verb, .topic = verb->HasTopic() ? Shown(topic) : std::string()};
  WriteLine(act, caller, numbers, RowOf(error.code).name);
}

void LogRefusedLogin(const net::Connection& connection, std::string_view door, const Error& error, IoTime now) {
  static LineLimit limit(1);
  LogStranger(limit, "login_refused", connection, door, error.message, now);
}

void LogTlsClient(const net::Connection& connection, std::string_view door, IoTime now) {
  static LineLimit limit(1);
  LogStranger(limit, "tls_on_plain_port", connection, door, "the client speaks TLS, and this port does not: closed",
              now);
}

}  // namespace tocsin::shared
