// The webhook sink against a real HTTP server whose every answer the test decides.
#include "sinks/webhook/sink.h"

#include <latch>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "sinks/webhook/receiver_test_site.h"
#include "sinks/webhook/sink_test_site.h"

namespace tocsin::webhook {
namespace {

using testing::HasSubstr;
using Settings = std::map<std::string, std::string>;

Reply Fine(const Received& /*received*/) { return {}; }

std::string UrlOf(const Receiver& receiver, std::string_view host = "127.0.0.1") {
  return fmt::format("http://{}:{}/hook", host, receiver.port());
}

TEST(WebhookSinkTest, AJobIsPostedAndConfirmed) {
  Receiver receiver(Fine);
  SinkSite site;
  Sink& sink = site.Open(WebhookTopic(UrlOf(receiver), {{"secret", "orders"}}));
  EXPECT_EQ(site.Send(sink).outcome, DeliverOutcome::kConfirmed);
  const std::vector<Received> all = receiver.received();
  ASSERT_EQ(all.size(), 1);
  EXPECT_EQ(all[0].target, "/hook");
  EXPECT_EQ(all[0].body, "pay now");
  EXPECT_EQ(all[0].Field("host"), fmt::format("127.0.0.1:{}", receiver.port()));
  EXPECT_EQ(all[0].Field("user-agent"), "tocsin/9.9");
  EXPECT_EQ(all[0].Field("tocsin-job-id"), "order-7");
  std::string signature;
  Signer::Make("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
      .value()
      .Append(signature, fmt::format("{}.{}.", all[0].Field("webhook-id"), all[0].Field("webhook-timestamp")),
              all[0].body);
  EXPECT_EQ(all[0].Field("webhook-signature"), signature);
}

TEST(WebhookSinkTest, ASecretThatIsReplacedSignsSoon) {
  std::string secret = "old";
  Options options = SinkSite::LoopbackAllowed();
  options.find_secret = [&](std::string_view) -> Result<std::string> {
    if (secret.empty()) return Fail(Code::kInvalidArgument, "it is gone");
    return secret;
  };
  Receiver receiver(Fine);
  SinkSite site(options);
  Sink& sink = site.Open(WebhookTopic(UrlOf(receiver), {{"secret", "orders"}}));
  const auto signed_with = [&](const std::string& key) {
    site.Send(sink);
    const Received received = receiver.received().back();
    std::string signature;
    Signer::Make(key).value().Append(
        signature, fmt::format("{}.{}.", received.Field("webhook-id"), received.Field("webhook-timestamp")),
        received.body);
    return received.Field("webhook-signature") == signature;
  };
  secret = "new";
  EXPECT_TRUE(signed_with("old"));
  site.clock().Pass(Millis(10'000));
  EXPECT_TRUE(signed_with("new"));
  secret = "";
  site.clock().Pass(Millis(10'000));
  EXPECT_TRUE(signed_with("new")) << "better than none";
}

TEST(WebhookSinkTest, OneConnectionCarriesManyRequests) {
  Receiver receiver(Fine);
  SinkSite site;
  Sink& sink = site.Open(WebhookTopic(UrlOf(receiver), {{"in_flight", "1"}}));
  site.Deliver(sink, std::vector<JobView>(20, Job()));
  site.UntilAnswered();
  EXPECT_EQ(receiver.received().size(), 20);
  EXPECT_EQ(receiver.connections(), 1);
}

TEST(WebhookSinkTest, NoMoreConnectionsThanRequestsThatMayBeUnderWay) {
  Receiver receiver(Fine);
  receiver.Hang();
  SinkSite site;
  Sink& sink = site.Open(WebhookTopic(UrlOf(receiver), {{"in_flight", "3"}, {"timeout_ms", "60000"}}));
  site.Deliver(sink, std::vector<JobView>(50, Job()));
  site.Until([&] { return receiver.connections() == 3; });
  receiver.Resume();
  site.UntilAnswered();
  EXPECT_EQ(receiver.connections(), 3);
  EXPECT_EQ(receiver.received().size(), 50);
}

TEST(WebhookSinkTest, ASilentReceiverLeavesSocketsToOthers) {
  Receiver silent(Fine);
  silent.Hang();
  Receiver well(Fine);
  Options options = SinkSite::LoopbackAllowed();
  options.connections_max = 8;
  SinkSite site(options);
  const Settings many{{"in_flight", "1000"}, {"timeout_ms", "60000"}};
  for (int i = 0; i < 2; ++i) {
    Sink& greedy = site.Open(WebhookTopic(UrlOf(silent), many));
    site.Deliver(greedy, std::vector<JobView>(100, Job()));
  }
  site.Until([&] { return silent.connections() == 6; });
  Sink& sink = site.Open(WebhookTopic(UrlOf(well), many));
  site.Deliver(sink, std::vector<JobView>(100, Job()));
  site.Until([&] { return site.answered() == 100; });
  EXPECT_EQ(silent.connections(), 6) << "half, and half of the rest";
  silent.Resume();
  site.UntilAnswered();
  for (const auto& outcome : site.outcomes()) EXPECT_EQ(outcome->outcome, DeliverOutcome::kConfirmed);
}

TEST(WebhookSinkTest, ASinkThatFindsNoPlaceForASocketGetsTheNextOne) {
  Receiver receiver(Fine);
  receiver.Hang();
  Options options = SinkSite::LoopbackAllowed();
  options.connections_max = 1;
  SinkSite site(options);
  for (int i = 0; i < 3; ++i) {
    Sink& sink = site.Open(WebhookTopic(UrlOf(receiver), {{"timeout_ms", "60000"}}));
    site.Deliver(sink, std::vector<JobView>(5, Job()));
  }
  site.Until([&] { return receiver.connections() == 1; });
  receiver.Resume();
  site.UntilAnswered();
  EXPECT_EQ(receiver.received().size(), 15) << "none keeps an idle connection while others wait";
}

TEST(WebhookSinkTest, WithoutAnOpenFileLeftAJobWaitsAndCostsNoAttempt) {
#if __has_feature(undefined_behavior_sanitizer)
  GTEST_SKIP() << "UBSan needs open files itself; the run with TSan has this test";
#endif
  Receiver receiver(Fine);
  SinkSite site;
  Sink& sink = site.Open(WebhookTopic(UrlOf(receiver)));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  site.Deliver(sink, {Job()});
  for (int i = 0; i < 10; ++i) site.loop().io().run_one_for(Millis(5));
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(site.answered(), 0);
  site.UntilAnswered();
  EXPECT_EQ(site.outcomes().back()->outcome, DeliverOutcome::kConfirmed);
}

TEST(WebhookSinkTest, AConnectionThatTheReceiverClosesIsReplaced) {
  Receiver receiver([](const Received&) { return Reply{.close = true}; });  // without saying so in its answer
  SinkSite site;
  Sink& sink = site.Open(WebhookTopic(UrlOf(receiver)));
  for (int i = 1; i <= 5; ++i) EXPECT_EQ(site.Send(sink).outcome, DeliverOutcome::kConfirmed);
  EXPECT_EQ(receiver.received().size(), 5);
  EXPECT_EQ(receiver.connections(), 5);
}

TEST(WebhookSinkTest, ARequestThatMeetsADeadConnectionIsSentOnceMore) {
  std::map<int, int> seen;  // requests of each connection
  Receiver receiver([&](const Received& received) {
    return ++seen[received.connection] == 2 ? Reply{.close = true, .silent = true} : Reply{};
  });
  SinkSite site;
  Sink& sink = site.Open(WebhookTopic(UrlOf(receiver)));
  EXPECT_EQ(site.Send(sink).outcome, DeliverOutcome::kConfirmed);
  EXPECT_EQ(site.Send(sink).outcome, DeliverOutcome::kConfirmed);
  EXPECT_EQ(receiver.connections(), 2);
  EXPECT_EQ(receiver.received().size(), 3);
}

TEST(WebhookSinkTest, AFreshConnectionThatDiesMeansRetry) {
  Receiver receiver([](const Received&) { return Reply{.close = true, .silent = true}; });
  SinkSite site;
  Sink& sink = site.Open(WebhookTopic(UrlOf(receiver)));
  const Delivered delivered = site.Send(sink);
  EXPECT_EQ(delivered.outcome, DeliverOutcome::kRetry);
  EXPECT_FALSE(delivered.unsent) << "it may have it";
  EXPECT_THAT(delivered.reason, HasSubstr("closed the connection without an answer"));
  EXPECT_EQ(receiver.received().size(), 1);
}

TEST(WebhookSinkTest, AnIdleConnectionIsLeftAfterHalfAMinute) {
  Receiver receiver(Fine);
  SinkSite site;
  Sink& sink = site.Open(WebhookTopic(UrlOf(receiver)));
  site.Send(sink);
  site.clock().Pass(Millis(29'000));
  site.Send(sink);
  EXPECT_EQ(receiver.connections(), 1);
  site.clock().Pass(Millis(30'001));
  EXPECT_EQ(site.Send(sink).outcome, DeliverOutcome::kConfirmed);
  EXPECT_EQ(receiver.connections(), 2);
  site.Until([&] { return receiver.hung_up() == 1; });
}

TEST(WebhookSinkTest, AReceiverThatTalksUnaskedIsLeft) {
  Receiver receiver(Fine);
  SinkSite site;
  Sink& sink = site.Open(WebhookTopic(UrlOf(receiver)));
  site.Send(sink);
  receiver.Blurt("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
  site.Until([&] { return receiver.hung_up() == 1; });
  EXPECT_EQ(site.Send(sink).outcome, DeliverOutcome::kConfirmed);
  EXPECT_EQ(receiver.connections(), 2);
}

TEST(WebhookSinkTest, EachStatusHasItsOutcome) {
  Receiver receiver([](const Received&) { return Reply{.status = 404}; });
  SinkSite site;
  Sink& strict = site.Open(WebhookTopic(UrlOf(receiver), {{"final_statuses", "410,404"}}));
  Sink& lenient = site.Open(WebhookTopic(UrlOf(receiver)));
  EXPECT_EQ(site.Send(strict).outcome, DeliverOutcome::kRefused);
  EXPECT_EQ(site.outcomes().back()->reason, "the receiver answered 404 Said So");
  EXPECT_EQ(site.Send(lenient).outcome, DeliverOutcome::kRetry);
  receiver.Answer(Reply{.status = 302, .fields = fmt::format("location: {}\r\n", UrlOf(receiver))});
  EXPECT_EQ(site.Send(strict).outcome, DeliverOutcome::kRetry);
  EXPECT_THAT(site.outcomes().back()->reason, HasSubstr("redirects are not followed"));
  receiver.Answer(Reply{.status = 429, .fields = "Retry-After: 9\r\n"});
  EXPECT_EQ(site.Send(strict).outcome, DeliverOutcome::kRetry);
  EXPECT_EQ(site.outcomes().back()->delay, Millis(9'000));
  receiver.Answer(Reply{.status = 410});
  EXPECT_EQ(site.Send(lenient).outcome, DeliverOutcome::kRefused);
  Sink& never = site.Open(WebhookTopic(UrlOf(receiver), {{"retry_4xx", "true"}}));
  EXPECT_EQ(site.Send(never).outcome, DeliverOutcome::kRetry);
  EXPECT_EQ(receiver.received().size(), 6);
}

TEST(WebhookSinkTest, ALongAnswerIsNotReadToItsEnd) {
  Receiver receiver([](const Received&) { return Reply{.body = std::string(65 << 10, 'x')}; });
  SinkSite site;
  Sink& sink = site.Open(WebhookTopic(UrlOf(receiver)));
  EXPECT_EQ(site.Send(sink).outcome, DeliverOutcome::kConfirmed);
  EXPECT_EQ(site.Send(sink).outcome, DeliverOutcome::kConfirmed);
  EXPECT_EQ(receiver.connections(), 2);
}

TEST(WebhookSinkTest, AnAnswerInChunksKeepsTheConnection) {
  Receiver receiver([](const Received&) {
    return Reply{.raw = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"};
  });
  SinkSite site;
  Sink& sink = site.Open(WebhookTopic(UrlOf(receiver)));
  EXPECT_EQ(site.Send(sink).outcome, DeliverOutcome::kConfirmed);
  EXPECT_EQ(site.Send(sink).outcome, DeliverOutcome::kConfirmed);
  EXPECT_EQ(receiver.connections(), 1);
}

TEST(WebhookSinkTest, WhatIsNoHttpMeansRetry) {
  Receiver receiver([](const Received&) { return Reply{.raw = "220 mail.example ESMTP\r\n"}; });
  SinkSite site;
  Sink& sink = site.Open(WebhookTopic(UrlOf(receiver)));
  EXPECT_EQ(site.Send(sink).outcome, DeliverOutcome::kRetry);
  EXPECT_THAT(site.outcomes().back()->reason, HasSubstr("not HTTP/1.1"));
}

TEST(WebhookSinkTest, AReceiverThatSaysNothingMeansRetryInTime) {
  Receiver receiver([](const Received&) { return Reply{.silent = true}; });
  SinkSite site;
  Sink& sink = site.Open(WebhookTopic(UrlOf(receiver), {{"timeout_ms", "100"}, {"in_flight", "2"}}));
  const auto from = std::chrono::steady_clock::now();
  site.Deliver(sink, std::vector<JobView>(4, Job()));
  site.UntilAnswered();
  EXPECT_GE(std::chrono::steady_clock::now() - from, Millis(200)) << "two rounds of two";
  for (const auto& delivered : site.outcomes()) {
    EXPECT_EQ(delivered->outcome, DeliverOutcome::kRetry);
    EXPECT_THAT(delivered->reason, HasSubstr("no answer in time"));
  }
  EXPECT_EQ(receiver.received().size(), 4) << "none is sent a second time";
}

TEST(WebhookSinkTest, AStatusCountsThoughTheBodyNeverEnds) {
  Receiver receiver([](const Received&) { return Reply{.raw = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc"}; });
  SinkSite site;
  Sink& sink = site.Open(WebhookTopic(UrlOf(receiver), {{"timeout_ms", "100"}}));
  EXPECT_EQ(site.Send(sink).outcome, DeliverOutcome::kConfirmed);
}

TEST(WebhookSinkTest, NobodyThereMeansRetryAtOnce) {
  Receiver receiver(Fine);
  receiver.Kill();
  SinkSite site;
  Sink& sink = site.Open(WebhookTopic(UrlOf(receiver), {{"timeout_ms", "600000"}}));
  site.Deliver(sink, std::vector<JobView>(500, Job()));
  site.UntilAnswered();
  for (const auto& delivered : site.outcomes()) {
    EXPECT_THAT(delivered->reason, HasSubstr("Connection refused"));
    EXPECT_TRUE(delivered->unsent) << "it costs no attempt";
  }
}

TEST(WebhookSinkTest, ANameThatTakesLongKeepsNoOtherWaiting) {
  std::latch slow(1);
  Options options = SinkSite::LoopbackAllowed();
  options.find_addresses = [&](const std::string& name) -> Result<Addresses> {
    if (name == "slow.example") slow.wait();
    if (name == "none.example") return Fail(Code::kUnavailable, "the name {} cannot be looked up: no", name);
    return Addresses{boost::asio::ip::make_address("127.0.0.1")};
  };
  Receiver receiver(Fine);
  SinkSite site(options);
  Sink& stuck = site.Open(WebhookTopic(UrlOf(receiver, "slow.example"), {{"timeout_ms", "300"}}));
  site.Deliver(stuck, std::vector<JobView>(30, Job()));
  Sink& other = site.Open(WebhookTopic(UrlOf(receiver, "other.example")));
  Sink& none = site.Open(WebhookTopic(UrlOf(receiver, "none.example")));
  site.Deliver(other, {Job()});
  site.Deliver(none, {Job()});
  site.UntilAnswered();
  EXPECT_THAT(site.outcomes()[0]->reason, HasSubstr("no address for the name in time"));
  EXPECT_EQ(site.outcomes()[30]->outcome, DeliverOutcome::kConfirmed);
  EXPECT_THAT(site.outcomes()[31]->reason, HasSubstr("cannot be looked up: no"));
  slow.count_down();
  EXPECT_EQ(site.Send(stuck).outcome, DeliverOutcome::kConfirmed);
}

TEST(WebhookSinkTest, OfTheAddressesOfANameOnlyThoseThatMayBeUsedAre) {
  Receiver refused(Fine, nullptr, "127.0.0.1");
  Options options = SinkSite::LoopbackAllowed();
  options.allow = "127.0.0.2";
  options.find_addresses = [](const std::string&) -> Result<Addresses> {
    return Addresses{boost::asio::ip::make_address("127.0.0.1"), boost::asio::ip::make_address("10.0.0.1"),
                     boost::asio::ip::make_address("127.0.0.2")};
  };
  SinkSite site(options);
  Sink& sink = site.Open(WebhookTopic(UrlOf(refused, "both.example"), {{"in_flight", "4"}}));
  site.Deliver(sink, std::vector<JobView>(12, Job()));
  site.UntilAnswered();
  for (const auto& delivered : site.outcomes()) EXPECT_THAT(delivered->reason, HasSubstr("Connection refused"));
  EXPECT_EQ(refused.connections(), 0);
}

TEST(WebhookSinkTest, AnotherAddressOfTheNameIsTriedWhereOneHangs) {
  Receiver receiver(Fine);
  Options options = SinkSite::LoopbackAllowed();
  options.allow += ",192.0.2.1";  // leads nowhere, or is refused by the network
  options.find_addresses = [](const std::string&) -> Result<Addresses> {
    return Addresses{boost::asio::ip::make_address("192.0.2.1"), boost::asio::ip::make_address("127.0.0.1")};
  };
  SinkSite site(options);
  Sink& sink = site.Open(WebhookTopic(UrlOf(receiver, "both.example"), {{"timeout_ms", "200"}}));
  site.Send(sink);
  if (site.outcomes()[0]->outcome == DeliverOutcome::kRetry) {
    EXPECT_EQ(site.Send(sink).outcome, DeliverOutcome::kConfirmed);
  }
}

TEST(WebhookSinkTest, ASinkMayBeClosedByWhoHearsAnAnswer) {
  Receiver receiver(Fine);
  SinkSite site;
  auto sink = site.factory().Open(WebhookTopic(UrlOf(receiver)), site.loop()).value();
  auto batch = std::make_shared<JobBatch>();
  batch->jobs.assign(100, Job());
  size_t answers = 0;
  bool closed = false;
  sink->Deliver(batch, [&](size_t, const Delivered&) {
    if (++answers == 1) sink->Close([&] { closed = true; });
  });
  site.Until([&] { return closed; });
  EXPECT_EQ(answers, 100);
  sink.reset();
}

TEST(WebhookSinkTest, WhatASinkHadNotSentWhenItIsClosedIsUnsent) {
  Receiver receiver(Fine);
  receiver.Hang();
  SinkSite site;
  auto sink = site.factory().Open(WebhookTopic(UrlOf(receiver), {{"in_flight", "1"}}), site.loop()).value();
  site.Deliver(*sink, std::vector<JobView>(2, Job()));
  site.Until([&] { return receiver.connections() == 1; });
  bool closed = false;
  sink->Close([&] { closed = true; });
  ASSERT_TRUE(site.outcomes()[1].has_value()) << "at once";
  EXPECT_TRUE(site.outcomes()[1]->unsent);
  site.Until([&] { return closed; });
  EXPECT_EQ(site.outcomes()[0]->outcome, DeliverOutcome::kRetry);
  EXPECT_FALSE(site.outcomes()[0]->unsent) << "the receiver may have it";
}

TEST(WebhookSinkTest, AWrongAnswerToABatchRetriesItsJobs) {
  Receiver receiver([](const Received&) { return Reply{.body = "fine"}; });
  SinkSite site;
  Sink& sink = site.Open(WebhookTopic(UrlOf(receiver), {{"batch", "10"}}));
  site.Deliver(sink, std::vector<JobView>(25, Job()));
  site.UntilAnswered();
  EXPECT_EQ(receiver.received().size(), 3);
  EXPECT_EQ(receiver.received()[0].Field("content-type"), "application/json");
  for (const auto& delivered : site.outcomes()) EXPECT_THAT(delivered->reason, HasSubstr("not a list of outcomes"));
  receiver.Answer(Reply{});
  EXPECT_EQ(site.Send(sink).outcome, DeliverOutcome::kConfirmed);
}

TEST(WebhookSinkTest, AnAnswerToABatchIsBoundedByTheJobsInIt) {
  Receiver receiver(Fine);
  SinkSite site;
  Sink& sink = site.Open(WebhookTopic(UrlOf(receiver), {{"batch", "10"}, {"timeout_ms", "600000"}}));
  for (const size_t jobs : {size_t{1}, size_t{10}}) {
    const size_t most = (4 + 2 * jobs) << 10;
    const auto answered = [&](const Reply& reply) {
      receiver.Answer(reply);
      site.Deliver(sink, std::vector<JobView>(jobs, Job()));
      site.UntilAnswered();
      return site.outcomes().back().value_or(Delivered{.reason = "none"}).reason;
    };
    EXPECT_EQ(answered(Reply{.body = std::string(most, ' ')}), "") << "blanks confirm all";
    EXPECT_THAT(answered(Reply{.body = std::string(most + 1, ' ')}), HasSubstr("too long"));
    // Neither is waited for what is announced, nor for the end of what has none.
    EXPECT_THAT(answered(Reply{.raw = fmt::format("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", most + 1)}),
                HasSubstr("too long"));
    EXPECT_THAT(answered(Reply{.raw = "HTTP/1.1 200 OK\r\n\r\n" + std::string(most + 1, ' ')}), HasSubstr("too long"));
  }
}

TEST(WebhookSinkTest, ABatchOfLargeJobsIsSeveralRequests) {
  Receiver receiver(Fine);
  SinkSite site;
  Sink& sink = site.Open(WebhookTopic(UrlOf(receiver), {{"batch", "100"}}));
  const std::string large(400 << 10, 'x');
  site.Deliver(sink, std::vector<JobView>(4, Job("a", large)));
  site.UntilAnswered();
  EXPECT_EQ(receiver.received().size(), 4);
  for (const auto& delivered : site.outcomes()) EXPECT_EQ(delivered->outcome, DeliverOutcome::kConfirmed);
}

TEST(WebhooksTest, WhatCannotWorkIsSaidWithItsField) {
  SinkSite site;
  const auto field = [&](const Topic& topic) {
    const Status status = site.factory().Check(topic);
    return status ? "" : status.error().field;
  };
  EXPECT_EQ(field(WebhookTopic("http://127.0.0.1/", {{"secret", "orders"}})), "");
  EXPECT_EQ(field(WebhookTopic("https://example.com/")), "");
  EXPECT_EQ(field(WebhookTopic("http://10.0.0.1/")), "delivery.url");
  EXPECT_EQ(field(WebhookTopic("gopher://h/")), "delivery.url");
  EXPECT_EQ(field(WebhookTopic("http://h/", {{"secret", "order"}})), "delivery.secret");
  EXPECT_EQ(field(WebhookTopic("http://h/", {{"final_statuses", "gone"}})), "delivery.final_statuses");
}

TEST(WebhooksTest, ASecretThatBelongsToOtherTopicsCannotBeUsed) {
  Options options = SinkSite::LoopbackAllowed();
  options.owners = Owners::Parse("secret:orders=shop-").value();
  SinkSite site(options);
  Topic topic = WebhookTopic("http://127.0.0.1/", {{"secret", "orders"}});
  const Status refused = site.factory().Check(topic);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kForbidden);
  EXPECT_EQ(refused.error().field, "delivery.secret");
  EXPECT_FALSE(site.factory().Open(topic, site.loop())) << "nor if it was set before the rule";
  topic.name = "shop-orders";
  EXPECT_TRUE(site.factory().Check(topic));
}

TEST(WebhooksTest, OptionsThatCannotWorkAreSaidAtTheStart) {
  Options options;
  options.allow = "10.0.0.0/99";
  EXPECT_EQ(Factory::Make(options).error().field, "webhook.allow");
  options.allow = "";
  options.ca_file = "/nonexistent/ca.pem";
  EXPECT_EQ(Factory::Make(options).error().field, "webhook.ca_file");
}

}  // namespace
}  // namespace tocsin::webhook
