#include "cli/verbs/verb_command.h"

#include <gmock/gmock.h>

namespace tocsin::cli {
namespace {

using testing::HasSubstr;

/// The request of a command line whose command is a verb of the API.
Result<Request> RequestFor(const std::vector<std::string>& words) {
  const Grammar grammar{Groups(), GlobalFlags(), [](std::string_view) { return std::nullopt; }, FromMs(0)};
  const auto parsed = Parse(grammar, words);
  if (!parsed) return std::unexpected(parsed.error());
  return RequestOf(VerbNamed(parsed->command->name), parsed->arguments);
}

std::string Body(const std::vector<std::string>& words) { return json::serialize(RequestFor(words).value().body); }
std::string Target(const std::vector<std::string>& words) { return RequestFor(words).value().target; }
std::string ErrorOf(const std::vector<std::string>& words) { return RequestFor(words).error().message; }

TEST(Request, EveryVerbOfTheTableThatHasACommandIsOne) {
  for (const api::Verb& verb : api::Verbs()) {
    if (!verb.cli.empty()) EXPECT_NE(FindCommand(Groups(), verb.cli), nullptr) << verb.cli;
  }
}

TEST(Request, FieldsGoIntoPathQueryAndBody) {
  const std::vector<std::string> count{"count", "a b", "x/y", "--key", "k?", "--event", "e", "--by", "2"};
  EXPECT_EQ(Target(count), "/v1/topics/a%20b/jobs/x%2Fy/count?key=k%3F");
  EXPECT_EQ(Body(count), R"({"event":"e","by":2})");
  EXPECT_EQ(Target({"topic", "drop", "t"}), "/v1/topics/t");
  EXPECT_EQ(Target({"stats"}), "/v1/stats");
  EXPECT_EQ(Body({"ack", "t", "a", "b"}), R"({"tokens":["a","b"]})");
  EXPECT_EQ(Body({"nack", "t", "a", "--dead", "--reason", "r"}), R"({"tokens":["a"],"dead":true,"reason":"r"})");
  EXPECT_EQ(Body({"submit", "t", "p", "--in", "5s", "--header", "h=v", "--trigger", "count", "--on-conflict", "keep"}),
            R"({"delay_ms":5000,"payload":"p","headers":{"h":"v"},"trigger":"count","on_conflict":"keep"})");
  EXPECT_EQ(Body({"submit", "t", "\xFF"}), R"({"payload_base64":"/w=="})");
  EXPECT_EQ(Body({"amend", "t", "i", "--at", "@5", "--past", "fire"}), R"({"due_ms":5,"past":"fire"})");
  EXPECT_EQ(Body({"clock", "advance", "--to", "@5"}), R"({"to_ms":5})");
  EXPECT_EQ(Target({"lease", "revoke", "t", "a/b", "--key", "k"}), "/v1/topics/t/leases/a%2Fb?key=k");
}

TEST(Request, SettingsOfATopicAndOfItsSink) {
  EXPECT_EQ(Body({"topic", "set", "t"}), "{}");
  EXPECT_EQ(Body({"topic", "set", "t", "--lease", "1m", "--paused", "no", "--capacity-bytes", "1KiB", "--sink", "pull",
                  "--in-flight", "7", "--retry-4xx", "yes"}),
            R"({"capacity_bytes":1024,"lease_ms":60000,"paused":false,)"
            R"("delivery":{"sink":"pull","in_flight":7,"retry_4xx":true}})");
}

TEST(Request, ContradictionsAndEmptyChangesAreRefused) {
  EXPECT_THAT(ErrorOf({"submit", "t", "--in", "5s", "--at", "@5"}), HasSubstr("--in and --at contradict each other"));
  EXPECT_THAT(ErrorOf({"nack", "t", "a", "--in", "5s", "--dead"}), HasSubstr("--in and --dead contradict each other"));
  EXPECT_THAT(ErrorOf({"submit", "t", "p", "--file", "f"}), HasSubstr("PAYLOAD and --file contradict each other"));
  EXPECT_THAT(ErrorOf({"amend", "t", "i", "--key", "k"}), HasSubstr("give --in, --at, PAYLOAD or --file"));
  EXPECT_THAT(ErrorOf({"count", "t", "i"}), HasSubstr("--event EVENT is missing"));
}

}  // namespace
}  // namespace tocsin::cli
