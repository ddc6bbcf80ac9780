#include <gtest/gtest.h>

#include "frontend/http/decode.h"

namespace tocsin::http {
namespace {

Status Check(std::string_view body) {
  const auto parsed = Document::Parse(MakeParser(), body);
  return parsed ? Status() : std::unexpected(parsed.error());
}

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

TEST(UniqueKeys, NamesTheInnerKeyBesideManyOthers) {
  std::string body = R"({"jobs":[{"id":"x"})";
  for (int i = 0; i < 3'000; ++i) body += fmt::format(R"(,{{"id":"{}","key":"k","payload":[{{}},{{"a":{{}}}}]}})", i);
  EXPECT_TRUE(Check(body + "]}"));
  EXPECT_EQ(Check(body + R"(,{"b":{"c":1,"d":[0,{"e":1,"\u0065":2}]}}]})").error().field, "jobs[3001].b.d[1].e");
}

TEST(UniqueKeys, LooksIntoPayloads) {
  const auto object = [](int keys, std::string_view last) {
    std::string text;
    for (int i = 0; i < keys; ++i) text += fmt::format("\"{}\":{{}},", i);
    return fmt::format("{{{}{}:1}}", text, last);
  };
  EXPECT_TRUE(Check(R"({"payload":)" + object(30'000, R"("x")") + "}"));
  EXPECT_EQ(Check(R"({"payload":)" + object(30'000, R"("1\u0037")") + "}").error().message,
            "payload.17 is there twice");
  EXPECT_EQ(Check(R"({"jobs":[{},{"payload":[1,)" + object(100, R"("17")") + "]}]}").error().field,
            "jobs[1].payload[1].17");
  EXPECT_EQ(Check(R"({"payload":{},"payload":{}})").error().field, "payload");
}

}  // namespace
}  // namespace tocsin::http
