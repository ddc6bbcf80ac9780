#include "frontend/http/unique_keys.h"

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

namespace tocsin::http {
namespace {

Status Check(std::string_view body) { return CheckKeysAreUnique(body, boost::json::parse(body)); }

TEST(UniqueKeys, TakesBodiesWithout) {
  for (const char* body :
       {"{}", R"({"a":1,"b":2})", R"({"a":{"a":{"a":[]}},"b":[{"a":1},{"a":1}]})", R"({"a":":","b\\":"\":\\"})",
        R"( { "a" : [ 1 , "x" , { "b" : null } ] } )", R"({"":"\\\\","x":"a:b\"c:d"})"}) {
    EXPECT_TRUE(Check(body)) << body;
  }
}

TEST(UniqueKeys, NamesTheKeyThatComesTwice) {
  const std::pair<const char*, const char*> refused[] = {
      {R"({"delay_ms":1,"delay_ms":2})", "delay_ms"},
      {R"({"delay_ms":1,"delay\u005fms":2})", "delay_ms"},
      {R"({"jobs":[{"a":1},{"a":":","b":[true,-1.5e3],"a":{}}]})", "jobs[1].a"},
      {R"({ "headers" : { "x" : "1" , "y" : "\"" , "x" : "2" } })", "headers.x"},
      {R"({"a\\":1,"b":2,"a\\":3})", "a\\"},
      {R"({"":1,"":1,"c":0})", ""},
  };
  for (const auto& [body, field] : refused) {
    const Status status = Check(body);
    ASSERT_FALSE(status) << body;
    EXPECT_EQ(status.error().code, Code::kInvalidArgument);
    EXPECT_EQ(status.error().field, field) << body;
  }
}

}  // namespace
}  // namespace tocsin::http
