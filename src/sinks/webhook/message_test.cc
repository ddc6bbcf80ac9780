#include "sinks/webhook/message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "sinks/webhook/sink_test_site.h"

namespace tocsin::webhook {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr int64_t kNow = 1'614'265'330;

std::unique_ptr<const Signer> MakeSigner(const std::string& secrets) {
  return std::make_unique<const Signer>(Signer::Make(secrets).value());
}

std::string HeadOf(const JobView& job, std::unique_ptr<const Signer> signer = nullptr,
                   const std::string& topic = "orders") {
  const MessageWriter writer(ParseTarget("https://h.example:8443/in?x=1").value(), topic, "tocsin/9.9",
                             std::move(signer));
  std::string head;
  writer.WriteHead(head, job, kNow);
  return head;
}

TEST(SignerTest, SignsAsTheStandardSays) {
  std::string signature;
  MakeSigner("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
      ->Append(signature, "msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.", "{\"test\": 2432232314}");
  EXPECT_EQ(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
}

TEST(SignerTest, EverySecretSignsEachTime) {
  const auto signer = MakeSigner(" whsec_cmF3IGtleQ==  raw\n");
  for (int i = 0; i < 2; ++i) {
    std::string signature;
    signer->Append(signature, "a.1.", "b");
    EXPECT_EQ(signature,
              "v1,1yYbzvpw39eO/zzCHoobDN3gd0AqweI4IyQy29jaPjE= v1,FM0mSzlv6TDLLMrzCwltpZq0aSEf9YDk8v63LTAaQT4=");
  }
}

TEST(SignerTest, WhatIsNoSecretIsRefusedAndNotShown) {
  for (const char* text : {"", " \n", "whsec_", "whsec_no-base64!", "a b c d e f g h i"}) {
    const auto signer = Signer::Make(text);
    ASSERT_FALSE(signer) << text;
    EXPECT_EQ(signer.error().field, "delivery.secret");
    EXPECT_THAT(signer.error().message, Not(HasSubstr("no-base64!")));
  }
}

TEST(MessageTest, AHeadHasEverythingOnce) {
  JobView job = Job("order 7 %", "pay now");
  job.key = " k\xc3\xb6";
  job.attempt = 3;
  job.headers = {{"Content-Type", "text/plain"}, {"trace", "a\r\nx: y"}, {"b d\xff", "50%"}, {"empty", ""}};
  EXPECT_EQ(HeadOf(job, MakeSigner("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")),
            "POST /in?x=1 HTTP/1.1\r\n"
            "host: h.example:8443\r\n"
            "user-agent: tocsin/9.9\r\n"
            "content-type: text/plain\r\n"
            "content-length: 7\r\n"
            "webhook-id: orders/j00000000004hm\r\n"
            "webhook-timestamp: 1614265330\r\n"
            "webhook-signature: v1,d2Sam8SQ1FzvRt4GcTVvI2IGG3tPL1gqivk90/QqJ+E=\r\n"
            "tocsin-topic: orders\r\n"
            "tocsin-job-id: order 7 %25\r\n"
            "tocsin-attempt: 3\r\n"
            "tocsin-due-ms: 1700000000000\r\n"
            "tocsin-token: " +
                TokenText(job.token) +
                "\r\n"
                "tocsin-key: %20k%C3%B6\r\n"
                "tocsin-header-trace: a%0D%0Ax: y\r\n"
                "tocsin-header-b%20d%FF: 50%25\r\n"
                "tocsin-header-empty: \r\n"
                "\r\n");
}

TEST(MessageTest, WithoutASecretNothingIsSigned) { EXPECT_THAT(HeadOf(Job()), Not(HasSubstr("signature"))); }

TEST(MessageTest, WhatAJobLacksIsLeftOut) {
  JobView job = Job("", "");
  job.due = kNever;
  const std::string head = HeadOf(job);
  EXPECT_THAT(head, HasSubstr("content-type: application/octet-stream\r\ncontent-length: 0\r\n"));
  EXPECT_THAT(head, HasSubstr("tocsin-job-id: " + UidText(job.uid) + "\r\n"));
  EXPECT_THAT(head, Not(HasSubstr("tocsin-key")));
  EXPECT_THAT(head, Not(HasSubstr("tocsin-due-ms")));
}

TEST(MessageTest, AJobCannotSayWhatTheServerSays) {
  JobView job = Job();
  // Programs that see headers as variables would take the second for the first.
  job.headers = {{"tocsin-probe", "true"}, {"tocsin_probe", "false"}, {"host", "other"}};
  const std::string head = HeadOf(job);
  EXPECT_THAT(head, HasSubstr("\r\ntocsin-probe: true\r\n"));
  EXPECT_THAT(head, HasSubstr("\r\ntocsin-header-tocsin_probe: false\r\n"));
  EXPECT_THAT(head, HasSubstr("\r\ntocsin-header-host: other\r\n"));
}

TEST(MessageTest, AContentTypeThatIsNoneTravelsAsAnyOtherHeader) {
  JobView job = Job();
  job.headers = {{"content-type", "text/plain\r\nevil: 1"}};
  const std::string head = HeadOf(job);
  EXPECT_THAT(head, HasSubstr("content-type: application/octet-stream\r\n"));
  EXPECT_THAT(head, HasSubstr("tocsin-header-content-type: text/plain%0D%0Aevil: 1\r\n"));
}

TEST(MessageTest, NoByteOfAJobBeginsAHeaderOrIsLost) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string text = {'a', static_cast<char>(byte), 'z', static_cast<char>(byte)};
    JobView job = Job(text);
    job.key = text;
    job.headers = {{text, text}, {"content-type", text}};
    const std::string head = HeadOf(job, nullptr, text);
    EXPECT_EQ(std::ranges::count(head, '\n'), std::ranges::count(head, '\r'));
    EXPECT_EQ(head.find("\r\n\r\n"), head.size() - 4);
    for (size_t line = 0, next = 0; (next = head.find("\r\n", line)) != line; line = next + 2) {
      const std::string_view field(head.data() + line, next - line);
      EXPECT_TRUE(std::ranges::all_of(field, [](char c) { return c >= 0x20 && c <= 0x7e; })) << byte << ": " << field;
      if (line > 0) EXPECT_TRUE(field.find(": ") != std::string_view::npos && field.find(": ") > 0) << field;
    }
    const size_t at = head.find("tocsin-key: ") + 12;
    EXPECT_EQ(DecodePercent(head.substr(at, head.find("\r\n", at) - at), false), text);
  }
}

}  // namespace
}  // namespace tocsin::webhook
