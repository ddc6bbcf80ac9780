#include "model/template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tocsin {
namespace {

using ::testing::HasSubstr;

JobView SomeJob() {
  JobView job;
  job.own_id = "order-7";
  job.key = "customer-3";
  job.headers = {{.name = "region", .value = "eu"}, {.name = "region", .value = "us"}, {.name = "empty", .value = ""}};
  return job;
}

std::string Filled(std::string_view text, const JobView& job = SomeJob()) {
  const Result<Template> parsed = Template::Parse("delivery.kafka_topic", text);
  if (!parsed) return "error: " + parsed.error().message;
  std::string out;
  parsed->Append(out, "orders", job);
  return out;
}

TEST(Template, EveryMarkStandsForWhatTheJobHas) {
  EXPECT_EQ(Filled(""), "");
  EXPECT_EQ(Filled("ready"), "ready");
  EXPECT_EQ(Filled("ready_{topic}"), "ready_orders");
  EXPECT_EQ(Filled("{key}"), "customer-3");
  EXPECT_EQ(Filled("{id}"), "order-7");
  EXPECT_EQ(Filled("{header:region}.{topic}{key}-{id}x"), "eu.orderscustomer-3-order-7x");
}

TEST(Template, TheBeginningIsWhatNoJobDecides) {
  const auto beginning = [](std::string_view text) { return Template::Parse("f", text).value().Beginning("orders"); };
  EXPECT_EQ(beginning("ready_{topic}.x"), "ready_orders.x");
  EXPECT_EQ(beginning("a{topic}b{key}c"), "aordersb");
  EXPECT_EQ(beginning("{header:to}c"), "");
}

TEST(Template, WhatAJobLacksIsNothing) {
  JobView bare;
  bare.uid = 5;
  EXPECT_EQ(Filled("a{key}b{header:region}c{header:Region}d", bare), "abcd");
  EXPECT_EQ(Filled("{header:empty}"), "");
  EXPECT_EQ(Filled("{id}", bare), UidText(5));
}

TEST(Template, DoubledBracesAreBraces) {
  EXPECT_EQ(Filled("{{topic}}"), "{topic}");
  EXPECT_EQ(Filled("{{{topic}}}"), "{orders}");
  EXPECT_EQ(Filled("}}{{"), "}{");
}

TEST(Template, AppendsBehindWhatIsThere) {
  std::string out = "before ";
  Template::Parse("delivery.exchange", "{topic}").value().Append(out, "orders", SomeJob());
  EXPECT_EQ(out, "before orders");
}

TEST(Template, MistakesNameTheFieldAndWhatThereIs) {
  for (const char* text : {"{topic", "topic}", "{", "}", "a{{b}"}) {
    const Result<Template> parsed = Template::Parse("delivery.exchange", text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, Code::kInvalidArgument);
    EXPECT_EQ(parsed.error().field, "delivery.exchange") << text;
    EXPECT_THAT(parsed.error().message, HasSubstr("alone")) << text;
  }
  for (const char* text : {"{}", "{ topic}", "{header:}", "{header}", "{Topic}", "{a{topic}"}) {
    const Result<Template> parsed = Template::Parse("delivery.exchange", text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_THAT(parsed.error().message, HasSubstr("unknown mark")) << text;
  }
  EXPECT_THAT(Template::Parse("delivery.exchange", "{topik}").error().message, HasSubstr("did you mean \"topic\"?"));
}

TEST(Template, KnowsWhetherJobsOfOneTopicDiffer) {
  EXPECT_FALSE(Template::Parse("f", "ready_{topic}{{key}}").value().DependsOnJob());
  EXPECT_TRUE(Template::Parse("f", "x{key}").value().DependsOnJob());
  EXPECT_TRUE(Template::Parse("f", "{id}").value().DependsOnJob());
  EXPECT_TRUE(Template::Parse("f", "{header:h}").value().DependsOnJob());
}

}  // namespace
}  // namespace tocsin
