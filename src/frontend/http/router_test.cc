#include "frontend/http/router.h"

#include <set>

#include <boost/json/parse.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "frontend/http/encode.h"

namespace tocsin::http {
namespace {

void Nothing(Call&) {}

const Router& Table() {
  static const Router router({
      {Verb::get, "/healthz", Access::kOpen, Nothing},
      {Verb::post, "/v1/topics/{topic}/jobs", Access::kOpen, Nothing},
      {Verb::get, "/v1/topics/{topic}/jobs", Access::kOpen, Nothing},
      {Verb::delete_, "/v1/topics/{topic}/jobs/{id}", Access::kOpen, Nothing, {"key"}},
  });
  return router;
}

TEST(Router, FindsByMethodAndPath) {
  const auto match = Table().Find(Verb::post, "/v1/topics/mail/jobs");
  ASSERT_TRUE(match);
  EXPECT_EQ(match->route, &Table().routes()[1]);
  EXPECT_EQ(match->params, std::vector<std::string>{"mail"});
  EXPECT_TRUE(match->query.empty());
}

TEST(Router, TheOpenApiDocumentDescribesEveryRouteAndNoOther) {
  std::set<std::string> described;
  const auto document = boost::json::parse(OpenApiDocument());
  for (const auto& [path, item] : document.at("paths").as_object()) {
    for (const auto& [method, operation] : item.as_object()) {
      if (method != "parameters") described.insert(fmt::format("{} {}", Capitals(method), std::string_view(path)));
    }
  }
  const Router router = MakeRouter(true);
  std::set<std::string> served;
  for (const Route& route : router.routes()) {
    if (route.pattern.starts_with("/ui")) continue;  // pages for people, not part of the API
    served.insert(fmt::format("{} {}", std::string_view(boost::beast::http::to_string(route.method)), route.pattern));
  }
  EXPECT_THAT(described, testing::ContainerEq(served));
}

TEST(Router, DecodesParametersAndTheQuery) {
  const auto match = Table().Find(Verb::delete_, "/v1/topics/a%2Bb/jobs/x%2Fy?key=k%26");
  ASSERT_TRUE(match);
  EXPECT_EQ(match->params, (std::vector<std::string>{"a+b", "x/y"}));
  EXPECT_EQ(match->query, (Query{{"key", "k&"}}));
}

TEST(Router, RefusesNamesThatNoTopicCanHave) {
  for (const std::string& name :
       {std::string("%ff"), std::string("a%20b"), std::string("%01"), std::string(257, 'z')}) {
    const auto match = Table().Find(Verb::delete_, "/v1/topics/" + name + "/jobs/1");
    ASSERT_FALSE(match) << name;
    EXPECT_EQ(match.error().code, Code::kInvalidArgument);
    EXPECT_EQ(match.error().field, "topic");
    EXPECT_LT(match.error().message.size(), 100U);
  }
}

TEST(Router, RefusesAQueryThatTheRouteDoesNotTake) {
  for (const auto& [method, target] :
       {std::pair(Verb::get, "/healthz?verbose=1"), std::pair(Verb::post, "/v1/topics/mail/jobs?verbose"),
        std::pair(Verb::delete_, "/v1/topics/mail/jobs/1?key=1&verbose=1")}) {
    const auto match = Table().Find(method, target);
    ASSERT_FALSE(match) << target;
    EXPECT_EQ(match.error().code, Code::kUnknownField);
    EXPECT_EQ(match.error().field, "verbose");
  }
  EXPECT_TRUE(Table().Find(Verb::get, "/healthz?"));
}

TEST(Router, CutsLongPathsShortInErrors) {
  const std::string long_path = "/" + std::string(10'000, 'x');
  EXPECT_LT(Table().Find(Verb::get, long_path).error().message.size(), 200U);
  EXPECT_LT(Table().Find(Verb::put, "/v1/topics" + long_path + "/jobs").error().message.size(), 200U);
  EXPECT_LT(Table().Find(Verb::post, "/v1/topics" + long_path + "%/jobs").error().message.size(), 200U);
  EXPECT_LT(Table().Find(Verb::get, "/healthz?" + long_path + "%").error().message.size(), 200U);
}

TEST(Router, SaysWhichMethodsAPathTakes) {
  std::string allow;
  const auto match = Table().Find(Verb::put, "/v1/topics/mail/jobs", &allow);
  ASSERT_FALSE(match);
  EXPECT_EQ(match.error().code, Code::kMethodNotAllowed);
  EXPECT_EQ(allow, "POST, GET, HEAD");
}

TEST(Router, FindsNothingElsewhere) {
  for (const char* target : {"/", "", "*", "healthz", "/healthz/", "/v1/topics//jobs", "/v1/topics/mail/jobs/", "/v1",
                             "/v1/topics/mail/jobs/1/2", "http://host/healthz"}) {
    const auto match = Table().Find(Verb::get, target);
    ASSERT_FALSE(match) << target;
    EXPECT_EQ(match.error().code, Code::kNotFound) << target;
  }
}

TEST(Router, RefusesAMalformedEscape) {
  const auto match = Table().Find(Verb::post, "/v1/topics/a%2/jobs");
  ASSERT_FALSE(match);
  EXPECT_EQ(match.error().code, Code::kInvalidArgument);
  EXPECT_EQ(match.error().field, "topic");
}

TEST(ParseQuery, TakesKnownNamesOnce) {
  const auto query = ParseQuery("key=a+b&&state=", {"key", "state"});
  ASSERT_TRUE(query);
  EXPECT_EQ(*query, (Query{{"key", "a b"}, {"state", ""}}));
  EXPECT_TRUE(ParseQuery("", {"key"})->empty());
  EXPECT_EQ(ParseQuery("key=1&key=2", {"key"}).error().code, Code::kInvalidArgument);
}

TEST(ParseQuery, NamesTheNearestKnownName) {
  const auto query = ParseQuery("kay=1", {"state", "key"});
  ASSERT_FALSE(query);
  EXPECT_EQ(query.error().code, Code::kUnknownField);
  EXPECT_EQ(query.error().field, "kay");
  EXPECT_NE(query.error().message.find("\"key\""), std::string::npos) << query.error().message;
}

}  // namespace
}  // namespace tocsin::http
