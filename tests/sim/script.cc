#include "sim/script.h"

#include <algorithm>

#include <sys/prctl.h>

#include "sim/generator.h"

namespace tocsin::sim {
namespace {

/// The state of a side after a restart, brought up to `now`.
std::string StateOf(Side& side, Moment now) {
  std::string error;
  Advance().run(side, now, [&](Reply reply) { error = reply.ok ? "" : reply.text; });
  return error.empty() ? Dump(*side.store, now) : "cannot advance: " + error;
}

}  // namespace

journal::Options Script::Options() {
  journal::Options options = SimNode::SmallOptions();
  options.segment_bytes = 12 << 10;
  return options;
}

Script MakeScript(uint64_t seed, size_t operations) {
  Script script;
  Generator generator(seed, {.large_percent = 40, .live_max = 60, .sweep_limit_min = 1'000});
  VirtualClock clock;
  MemoryStore oracle;
  Side side{.store = &oracle};
  const auto add = [&](Operation operation) {
    Script::Step step{.operation = std::move(operation), .wait = generator.Wait()};
    step.pump = generator.Chance(70) ? Script::Pump::kAll : static_cast<Script::Pump>(generator.Below(2));
    clock.Advance(step.wait);
    script.states.push_back(oracle);
    MemoryStore partly = oracle;
    Side partly_side{.store = &partly, .tokens = side.tokens};
    for (const Operation& part : step.operation.parts) {
      part.run(partly_side, clock.Now(), [](const Reply&) {});
      step.within.push_back(partly);
    }
    step.operation.run(side, clock.Now(), [&](Reply reply) { step.expected = std::move(reply); });
    generator.Learn(step.expected, side);
    script.steps.push_back(std::move(step));
  };
  for (Operation& operation : generator.Begin()) add(std::move(operation));
  while (script.steps.size() < operations) add(generator.Next(side, clock.Now()));
  script.states.push_back(oracle);
  return script;
}

ScriptRun::ScriptRun(const Script& script) : script_(script), node_(std::make_unique<SimNode>(Script::Options())) {
  // A store that holds few jobs touches few pages: thousands of them are opened here, and zeroing huge pages would take
  // most of the time.
  static const int small_pages = prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
  static_cast<void>(small_pages);
}

void ScriptRun::Run() {
  if (const Status opened = node_->Open(); !opened) {
    error_ = opened.error().message;
    return;
  }
  side_.store = &node_->store();
  for (const Script::Step& step : script_.steps) {
    node_->clock().Advance(step.wait);
    const size_t number = issued_++;
    step.operation.run(side_, node_->clock().Now(), [this, number](const Reply& reply) { Answered(number, reply); });
    if (step.pump == Script::Pump::kAll) node_->Pump();
    if (step.pump == Script::Pump::kCommit) {
      node_->node().journal().Commit();
      node_->loop().RunAll();
    }
    if (node_->node().journal().failed()) {
      node_->Pump();
      return;
    }
  }
  node_->Pump();
  if (const Status closed = node_->node().Close(); !closed) error_ = closed.error().message;
}

void ScriptRun::Answered(size_t number, const Reply& reply) {
  const Script::Step& step = script_.steps[number];
  if (!reply.ok && step.expected.ok) {
    if (error_.empty()) error_ = reply.text;
    if (!node_->node().journal().failed()) wrong_ = step.operation.text + " failed on a sound disk: " + reply.text;
    return;
  }
  if (reply.ok && !error_.empty() && step.operation.writes) wrong_ = step.operation.text + " was ok after a failure";
  if (reply.ok != step.expected.ok || (reply.ok && reply.text != step.expected.text)) {
    wrong_ = fmt::format("{}\nstored:   {}\nexpected: {}", step.operation.text, reply.text, step.expected.text);
  }
  if (reply.ok && step.operation.writes) acknowledged_ = std::max(acknowledged_, number + 1);
}

namespace {

/// A node that was opened after a failure, beside the state of the oracle that it has to be in.
class Survivor {
 public:
  explicit Survivor(std::unique_ptr<SimFileSystem> disk) : node_(Script::Options(), std::move(disk)) {}

  std::string Check(const Script& script, const ScriptRun& run, Moment moment, const std::vector<Token>& old_tokens) {
    const Moment start = node_.clock().Now();
    node_.clock().Advance(moment.utc - start.utc);
    if (const Status opened = node_.Open(); !opened) return "it does not open: " + opened.error().message;
    stored_.store = &node_.store();
    if (const std::string wrong = Match(script, run); !wrong.empty()) return wrong;
    if (const std::string wrong = GoesOn(old_tokens); !wrong.empty()) return "going on: " + wrong;
    if (const Status opened = node_.CloseAndOpen(); !opened) return "it does not open again: " + opened.error().message;
    stored_.store = &node_.store();
    oracle_.Reopen();
    expected_ = {.store = &oracle_};
    return Same("opened again");
  }

 private:
  Moment Now() { return node_.clock().Now(); }

  std::string Same(std::string_view when) {
    const std::string stored = StateOf(stored_, Now());
    const std::string expected = StateOf(expected_, Now());
    return stored == expected ? "" : fmt::format("{}\n{}", when, Difference(stored, expected));
  }

  std::string Match(const Script& script, const ScriptRun& run) {
    std::string wrong;
    const auto matches = [&](const MemoryStore& state) {
      oracle_ = state;
      oracle_.Reopen();
      expected_ = {.store = &oracle_};
      const std::string differs =
          Same(fmt::format("{} steps acknowledged, {} issued", run.acknowledged(), run.issued()));
      if (wrong.empty()) wrong = differs;
      return differs.empty();
    };
    for (size_t steps = run.acknowledged(); steps <= run.issued(); ++steps) {
      if (matches(script.states[steps])) return "";
      if (steps < run.issued() && std::ranges::any_of(script.steps[steps].within, matches)) return "";
    }
    return wrong;
  }

  std::string StaleTokens(const std::vector<Token>& tokens) {
    std::string wrong;
    for (const TopicFigures& figures : node_.store().Topics()) {
      for (const Token& token : tokens) {
        const Settlement ack{.token = token};
        node_.store().Settle(figures.topic.name, {&ack, 1}, Now(), [&](const auto& outcomes) {
          if (!outcomes || outcomes->at(0) != SettleOutcome::kStale) wrong = "an old token is not stale";
        });
      }
    }
    return wrong;
  }

  std::string Both(const Operation& operation) {
    Reply expected;
    std::optional<Reply> stored;
    operation.run(expected_, Now(), [&](Reply reply) { expected = std::move(reply); });
    operation.run(stored_, Now(), [&](Reply reply) { stored = std::move(reply); });
    if (!stored) node_.Pump();
    if (!stored) return operation.text + ": no answer";
    const bool same = stored->ok == expected.ok && (!expected.ok || stored->text == expected.text);
    return same ? "" : fmt::format("{}\nstored:   {}\nexpected: {}", operation.text, stored->text, expected.text);
  }

  std::string GoesOn(const std::vector<Token>& old_tokens) {
    // An id of a job that did not survive is not given out again: in another millisecond both count from the start.
    node_.clock().Advance(Millis(1));
    std::vector<Operation> operations;
    operations.push_back(PutTopic(DefaultTopic("after")));
    operations.push_back(Submit("after", {OwnedJob{.id = "new", .payload = "new"}, OwnedJob{.payload = "new"}}));
    for (const TopicFigures& figures : oracle_.Topics()) {
      Topic topic = figures.topic;
      topic.paused = false;
      operations.push_back(PutTopic(topic));
      operations.push_back(Claim(topic.name, 5, Millis(0), topic.name != "mixed"));
    }
    for (const Operation& operation : operations) {
      if (const std::string wrong = Both(operation); !wrong.empty()) return wrong;
    }
    // Now that there are leases which an old token could be taken for.
    if (const std::string wrong = StaleTokens(old_tokens); !wrong.empty()) return wrong;
    std::vector<OwnedSettlement> settlements;
    for (size_t i = 0; i < expected_.tokens.size(); ++i) {
      settlements.push_back({i, i % 2 == 0 ? SettleKind::kAck : SettleKind::kNack, {}, {}, "again"});
    }
    for (const TopicFigures& figures : oracle_.Topics()) {
      if (const std::string wrong = Both(Settle(figures.topic.name, settlements)); !wrong.empty()) return wrong;
    }
    node_.clock().Advance(std::chrono::hours(1));
    return Same("an hour later");
  }

  SimNode node_;
  MemoryStore oracle_;
  Side stored_;
  Side expected_;
};

}  // namespace

std::string CheckSurvivors(const Script& script, const ScriptRun& run, std::unique_ptr<SimFileSystem> disk,
                           Moment moment, std::vector<Token> old_tokens) {
  // The first ones: a server that counted from the beginning again would give out their likes.
  constexpr size_t kTokens = 10;
  if (old_tokens.size() > kTokens) old_tokens.resize(kTokens);
  return Survivor(std::move(disk)).Check(script, run, moment, old_tokens);
}

}  // namespace tocsin::sim
