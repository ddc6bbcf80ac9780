// Names of receivers: those that hang, fail, and move. The receivers are real; the names are looked up by the tests.
#include "sinks/webhook/lookup.h"

#include <atomic>
#include <latch>
#include <semaphore>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sinks/webhook/receiver_test_site.h"
#include "sinks/webhook/sink_test_site.h"

namespace tocsin::webhook {
namespace {

using testing::HasSubstr;

Reply Fine(const Received& /*received*/) { return {}; }
/// So that every request needs another connection.
Reply FineAndClosed(const Received& /*received*/) { return {.close = true}; }

Addresses Loopback(const char* address = "127.0.0.1") { return {boost::asio::ip::make_address(address)}; }

std::string UrlOf(const Receiver& receiver, std::string_view host) {
  return fmt::format("http://{}:{}/hook", host, receiver.port());
}

Options WithNames(NameLookup::Find find, NameLookup::Times times = {}) {
  Options options = SinkSite::LoopbackAllowed();
  options.find_addresses = std::move(find);
  options.lookup_times = times;
  return options;
}

TEST(NameLookupTest, NamesThatHangKeepNoOtherWaitingAndCostNoAttempt) {
  std::latch end(1);
  Receiver receiver(Fine);
  SinkSite site(WithNames(
      [&](const std::string& name) -> Result<Addresses> {
        if (name.starts_with("hang")) end.wait();
        return Loopback();
      },
      {.deadline = Millis(2'000), .patience = Millis(50)}));
  constexpr size_t kHanging = 100;
  for (size_t i = 0; i < kHanging; ++i) {
    const std::string host = fmt::format("hang-{}.example", i);
    site.Deliver(site.Open(WebhookTopic(UrlOf(receiver, host), {{"timeout_ms", "60000"}})), {Job()});
  }
  Sink& well = site.Open(WebhookTopic(UrlOf(receiver, "well.example")));
  site.Deliver(well, {Job()});
  site.Until([&] { return site.outcomes().back().has_value(); });
  EXPECT_EQ(site.outcomes().back()->outcome, DeliverOutcome::kConfirmed);
  site.UntilAnswered();
  end.count_down();
  for (size_t i = 0; i < kHanging; ++i) {
    const Delivered& delivered = *site.outcomes()[i];
    EXPECT_THAT(delivered.reason, HasSubstr("no address for the name in time"));
    EXPECT_TRUE(delivered.unsent);
  }
}

// As after a start with hundreds of topics whose names hang: they came first, and none is known yet.
TEST(NameLookupTest, AmongHundredsOfNewNamesThatHangOneThatDoesNotGoesSoon) {
  struct Hang {
    std::counting_semaphore<> end{0};
    std::atomic<size_t> names = 0;
  };
  const auto hang = std::make_shared<Hang>();  // threads may outlive the test
  constexpr size_t kHanging = 500;
  ShiftedClock clock;
  net::AsioLoop loop(clock);
  {
    NameLookup lookup(
        [hang](const std::string& name) -> Result<Addresses> {
          if (name == "well.example") return Loopback();
          ++hang->names;
          hang->names.notify_all();
          hang->end.acquire();
          return Fail(Code::kUnavailable, "no");
        },
        {.patience = Millis(1)});
    for (size_t i = 0; i < kHanging; ++i) {
      lookup.Ask(fmt::format("hang-{}.example", i), loop, [](const Result<Addresses>&) {});
    }
    // As many as may hang at once.
    for (size_t now = hang->names; now < 112; now = hang->names) hang->names.wait(now);
    bool found = false;
    lookup.Ask("well.example", loop, [&](const Result<Addresses>& addresses) { found = addresses.has_value(); });
    hang->end.release(4);  // the end of one lets another one begin
    while (!found) ASSERT_GT(loop.io().run_one_for(std::chrono::seconds(20)), 0U);
    EXPECT_LE(hang->names, 116U);
    hang->end.release(kHanging);
  }
}

// They were found before, so they had the first turn until they began to hang.
TEST(NameLookupTest, NamesThatWereFoundBeforeAndHangNowKeepNoOtherWaiting) {
  std::latch end(1);
  std::atomic<bool> hang = false;
  Receiver receiver(FineAndClosed);
  SinkSite site(WithNames(
      [&](const std::string& name) -> Result<Addresses> {
        if (hang && name.starts_with("hang")) end.wait();
        return Loopback();
      },
      {.fresh = Millis(0), .usable = Millis(0), .deadline = Millis(2'000), .patience = Millis(50)}));
  std::vector<Sink*> sinks;
  for (size_t i = 0; i < 100; ++i) {
    const std::string host = fmt::format("hang-{}.example", i);
    sinks.push_back(&site.Open(WebhookTopic(UrlOf(receiver, host), {{"timeout_ms", "60000"}})));
    EXPECT_EQ(site.Send(*sinks.back()).outcome, DeliverOutcome::kConfirmed);
  }
  hang = true;
  for (Sink* const sink : sinks) site.Deliver(*sink, {Job()});
  EXPECT_EQ(site.Send(site.Open(WebhookTopic(UrlOf(receiver, "well.example")))).outcome, DeliverOutcome::kConfirmed);
  end.count_down();
  site.UntilAnswered();
}

TEST(NameLookupTest, AStopDoesNotWaitForANameThatHangs) {
  const auto end = std::make_shared<std::latch>(1);
  const auto hanging = std::make_shared<std::atomic<bool>>(false);
  ShiftedClock clock;
  net::AsioLoop loop(clock);
  auto lookup = std::make_unique<NameLookup>(
      [end, hanging](const std::string&) -> Result<Addresses> {
        *hanging = true;
        end->wait();
        return Loopback();
      },
      NameLookup::Times{});
  lookup->Ask("hangs.example", loop, [](const Result<Addresses>&) { FAIL() << "it is gone"; });
  while (!*hanging) std::this_thread::yield();
  const auto began = std::chrono::steady_clock::now();
  lookup.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(10));
  end->count_down();
}

TEST(NameLookupTest, NamesThatHungHaveFewThreadsTheNextTime) {
  std::latch end(1);
  std::atomic<size_t> hanging = 0;
  std::atomic<bool> hang = false;
  SinkSite site(WithNames(
      [&](const std::string& name) -> Result<Addresses> {
        if (name == "well.example") return Loopback();
        if (!hang) return Fail(Code::kUnavailable, "no");
        ++hanging;
        end.wait();
        return Fail(Code::kUnavailable, "no");
      },
      {.rest_min = Millis(0), .rest_max = Millis(0)}));
  Receiver receiver(Fine);
  std::vector<Sink*> sinks;
  for (size_t i = 0; i < 100; ++i) {
    const std::string host = fmt::format("hang-{}.example", i);
    sinks.push_back(&site.Open(WebhookTopic(UrlOf(receiver, host), {{"timeout_ms", "60000"}})));
    EXPECT_TRUE(site.Send(*sinks.back()).unsent);
  }
  hang = true;
  for (Sink* const sink : sinks) site.Deliver(*sink, {Job()});
  site.Until([&] { return hanging == 8; });
  EXPECT_EQ(site.Send(site.Open(WebhookTopic(UrlOf(receiver, "well.example")))).outcome, DeliverOutcome::kConfirmed);
  EXPECT_EQ(hanging.load(), 8);
  end.count_down();
  site.UntilAnswered();
}

// As when a name server was away for a while, beside names that never answer.
TEST(NameLookupTest, ANameThatIsBackDoesNotWaitForNamesThatHangAndWereNeverFound) {
  struct Names {
    std::latch end{1};
    std::atomic<bool> away = false;
    std::atomic<bool> hang = false;
    std::atomic<size_t> hanging = 0;
  };
  const auto names = std::make_shared<Names>();  // threads may outlive the test
  ShiftedClock clock;
  net::AsioLoop loop(clock);
  {
    NameLookup lookup(
        [names](const std::string& name) -> Result<Addresses> {
          if (name == "well.example" && !names->away) return Loopback();
          if (name != "well.example" && names->hang) {
            ++names->hanging;
            names->hanging.notify_all();
            names->end.wait();
          }
          return Fail(Code::kUnavailable, "no");
        },
        {.fresh = Millis(0), .usable = Millis(0), .rest_min = Millis(0), .rest_max = Millis(0)});
    size_t answered = 0;
    bool found = false;
    const auto ask = [&](const std::string& name) {
      lookup.Ask(name, loop, [&](const Result<Addresses>& addresses) {
        ++answered;
        found = addresses.has_value();
      });
    };
    const auto ask_all = [&] {
      for (size_t i = 0; i < 100; ++i) ask(fmt::format("hang-{}.example", i));
    };
    ask("well.example");
    while (answered < 1) ASSERT_GT(loop.io().run_one_for(std::chrono::seconds(20)), 0U);
    EXPECT_TRUE(found);
    names->away = true;
    ask("well.example");
    ask_all();
    while (answered < 102) ASSERT_GT(loop.io().run_one_for(std::chrono::seconds(20)), 0U);
    names->hang = true;
    ask_all();
    for (size_t now = names->hanging; now < 8; now = names->hanging) names->hanging.wait(now);
    names->away = false;
    ask("well.example");
    while (answered < 103 && loop.io().run_one_for(std::chrono::seconds(20)) > 0) continue;
    EXPECT_TRUE(found);
    EXPECT_EQ(names->hanging, 8U);
    names->end.count_down();
  }
}

TEST(NameLookupTest, WithoutAnyThreadAskersGetAnErrorAtOnce) {
  bool threads = false;
  ShiftedClock clock;
  net::AsioLoop loop(clock);
  NameLookup lookup([](const std::string&) -> Result<Addresses> { return Loopback(); }, {},
                    [&threads](std::function<void()> task) {
                      if (!threads) throw std::system_error(EAGAIN, std::generic_category());
                      NameLookup::OnThread(std::move(task));
                    });
  const auto ask = [&] {
    std::optional<Result<Addresses>> answer;
    lookup.Ask("well.example", loop, [&](const Result<Addresses>& addresses) { answer = addresses; });
    while (!answer && loop.io().run_one_for(std::chrono::seconds(20)) > 0) continue;
    return answer.value_or(Fail(Code::kInternal, "no answer"));
  };
  for (int i = 0; i < 2; ++i) {
    const auto none = ask();
    ASSERT_FALSE(none);
    EXPECT_THAT(none.error().message, HasSubstr("no thread for looking names up"));
  }
  threads = true;
  EXPECT_TRUE(ask());
}

TEST(NameLookupTest, AnAnswerIsUsedAgainForAWhile) {
  std::atomic<int> lookups = 0;
  const auto find = [&](const std::string&) -> Result<Addresses> {
    ++lookups;
    return Loopback();
  };
  Receiver receiver(FineAndClosed);
  for (const Millis fresh : {Millis(600'000), Millis(0)}) {
    lookups = 0;
    SinkSite site(WithNames(find, {.fresh = fresh, .usable = fresh}));
    Sink& sink = site.Open(WebhookTopic(UrlOf(receiver, "well.example")));
    for (int i = 0; i < 5; ++i) EXPECT_EQ(site.Send(sink).outcome, DeliverOutcome::kConfirmed);
    EXPECT_EQ(lookups.load(), fresh > Millis(0) ? 1 : 5);
  }
}

TEST(NameLookupTest, ANameInUseDoesNotWaitForItsNextLookup) {
  std::latch end(1);
  std::atomic<int> lookups = 0;
  Receiver receiver(FineAndClosed);
  SinkSite site(WithNames(
      [&](const std::string&) -> Result<Addresses> {
        if (++lookups > 1) end.wait();  // the name server hangs from now on
        return Loopback();
      },
      {.fresh = Millis(0), .usable = Millis(600'000)}));
  Sink& sink = site.Open(WebhookTopic(UrlOf(receiver, "well.example")));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(site.Send(sink).outcome, DeliverOutcome::kConfirmed);
  site.Until([&] { return lookups == 2; });
  end.count_down();
}

TEST(NameLookupTest, ANameThatFailedRests) {
  std::atomic<int> lookups = 0;
  const auto find = [&](const std::string& name) -> Result<Addresses> {
    ++lookups;
    return Fail(Code::kUnavailable, "the name {} cannot be looked up: no", name);
  };
  Receiver receiver(Fine);
  for (const Millis rest : {Millis(600'000), Millis(0)}) {
    lookups = 0;
    SinkSite site(WithNames(find, {.rest_min = rest, .rest_max = rest}));
    Sink& sink = site.Open(WebhookTopic(UrlOf(receiver, "none.example")));
    for (int i = 0; i < 5; ++i) {
      const Delivered delivered = site.Send(sink);
      EXPECT_TRUE(delivered.unsent);
      EXPECT_THAT(delivered.reason, HasSubstr("cannot be looked up: no"));
    }
    EXPECT_EQ(lookups.load(), rest > Millis(0) ? 1 : 5);
  }
}

TEST(NameLookupTest, AnAddressWhereNobodyIsLeadsToAnotherLookup) {
  std::atomic<int> lookups = 0;
  Receiver receiver(Fine);
  SinkSite site(WithNames(
      [&](const std::string&) -> Result<Addresses> {
        return Loopback(++lookups == 1 ? "127.0.0.2" : "127.0.0.1");  // the receiver has moved
      },
      {.rest_min = Millis(0)}));
  Sink& sink = site.Open(WebhookTopic(UrlOf(receiver, "moves.example")));
  const Delivered first = site.Send(sink);
  EXPECT_EQ(first.outcome, DeliverOutcome::kRetry);
  EXPECT_TRUE(first.unsent);
  EXPECT_EQ(site.Send(sink).outcome, DeliverOutcome::kConfirmed);
}

TEST(NameLookupTest, AKeptConnectionIsLeftAfterAMinuteSoThatTheNameIsLookedUpAgain) {
  std::atomic<int> lookups = 0;
  Receiver receiver(Fine);
  SinkSite site(WithNames(
      [&](const std::string&) -> Result<Addresses> {
        ++lookups;
        return Loopback();
      },
      {.fresh = Millis(0), .usable = Millis(0)}));
  Sink& sink = site.Open(WebhookTopic(UrlOf(receiver, "well.example")));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(site.Send(sink).outcome, DeliverOutcome::kConfirmed);
    EXPECT_EQ(receiver.connections(), 1) << "it is busy all the time";
    site.clock().Pass(Millis(25'000));
  }
  EXPECT_EQ(site.Send(sink).outcome, DeliverOutcome::kConfirmed);  // 75 s: the last one on this connection
  EXPECT_EQ(site.Send(sink).outcome, DeliverOutcome::kConfirmed);
  EXPECT_EQ(receiver.connections(), 2);
  EXPECT_EQ(lookups.load(), 2);
}

}  // namespace
}  // namespace tocsin::webhook
