#include "core/validate.h"
#include "frontend/resp/commands/commands.h"

namespace tocsin::resp {
namespace {

struct Draft {
  const Limits& limits;
  Settlement each;  // what holds for every token
  bool dead = false;
};

constexpr Option<Draft> kNackOptions[] = {
    {"DELAY", 1,
     [](Draft& d, std::string_view word, Values v) {
       return Put(d.each.delay, Number(word, v[0], 0, kDelayMax.count()));
     }},
    {"REASON", 1,
     [](Draft& d, std::string_view, Values v) -> Status {
       d.each.reason = v[0];
       return {};
     }},
    {"DEAD", 0,
     [](Draft& d, std::string_view, Values) -> Status {
       d.dead = true;
       return {};
     }},
};
constexpr Option<Draft> kExtendOptions[] = {
    {"LEASE", 1,
     [](Draft& d, std::string_view word, Values v) {
       return Put(d.each.lease, Number(word, v[0], 1, d.limits.lease_max.count()));
     }},
};

Error NotAToken(std::string_view word, std::span<const Option<Draft>> options) {
  std::string message = fmt::format("'{}' is not a token that a reserve gave out", Shown(word));
  for (const auto& option : options) {
    message += fmt::format("{}{}", &option == options.data() ? ", nor an option; the options are " : ", ", option.word);
  }
  return {Code::kInvalidArgument, std::move(message), "token"};
}

/// Tokens stand first; an option begins with the first word that is none.
void Settle(Call& call, SettleKind kind, std::span<const Option<Draft>> options) {
  Draft draft{.limits = ServiceOf(call).limits()};
  draft.each.kind = kind;
  static thread_local std::vector<Token> tokens;  // scratch
  tokens.clear();
  Values args = call.args.subspan(1);
  for (; !args.empty(); args = args.subspan(1)) {
    const auto token = ParseToken(args.front());
    if (!token) break;
    tokens.push_back(*token);
  }
  uint32_t seen = 0;
  while (!args.empty()) {
    const auto taken = TakeOption<Draft>(draft, args, options, seen);
    if (!taken && taken.error().code == Code::kUnknownField) {
      return call.Fail(NotAToken(args.front(), options));
    }
    if (!taken) return call.Fail(taken.error());
    args = args.subspan(*taken);
  }
  if (draft.dead && draft.each.delay) {
    return call.Fail({Code::kInvalidArgument, "DELAY and DEAD: a dead letter is not tried again", "DELAY"});
  }
  if (draft.dead) draft.each.kind = SettleKind::kBury;
  if (tokens.empty()) return call.Fail({Code::kInvalidArgument, "a token is missing", "token"});
  if (const Status few = CheckBatch(call, "tokens", tokens.size()); !few) return call.Fail(few.error());
  if (const Status valid = Validate(draft.each, draft.limits); !valid) return call.Fail(valid.error());
  SettleRun& run = call.session.pipeline().Open<SettleRun>(call, tokens.size());
  run.parts.push_back({.items = tokens.size()});
  run.request.settlements.reserve(run.request.settlements.size() + tokens.size());
  for (const Token& token : tokens) run.request.settlements.emplace_back(draft.each).token = token;
}

}  // namespace

const Command kJobAck = {
    .name = "JOB.ACK",
    .syntax = "topic token [token ...]",
    .summary = "Says that jobs are done.",
    .args_min = 2,
    .args_max = kAnyNumber,
    .access = auth::Access::kConsume,
    .writes = true,
    .run = [](Call& call) { Settle(call, SettleKind::kAck, {}); },
};

const Command kJobNack = {
    .name = "JOB.NACK",
    .syntax = "topic token [token ...] [DELAY ms | DEAD] [REASON text]",
    .summary = "Gives jobs back, to be tried again after a delay or the topic's back-off, or as dead letters.",
    .args_min = 2,
    .args_max = kAnyNumber,
    .access = auth::Access::kConsume,
    .writes = true,
    .run = [](Call& call) { Settle(call, SettleKind::kNack, kNackOptions); },
};

const Command kJobExtend = {
    .name = "JOB.EXTEND",
    .syntax = "topic token [token ...] [LEASE ms]",
    .summary = "Lets leases run longer, from now.",
    .args_min = 2,
    .args_max = kAnyNumber,
    .access = auth::Access::kConsume,
    .writes = true,
    .run = [](Call& call) { Settle(call, SettleKind::kExtend, kExtendOptions); },
};

}  // namespace tocsin::resp
