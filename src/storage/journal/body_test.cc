#include "storage/journal/body.h"

#include <gtest/gtest.h>

namespace tocsin::journal {
namespace {

std::string Encoded(const NewJob& job) {
  std::string bytes(BodySize(job), '\0');
  EncodeBody(job, bytes.data());
  return bytes;
}

TEST(Body, ComesBackWhateverItHas) {
  for (const std::string_view id : {"", "own"}) {
    for (const std::string_view key : {"", "key"}) {
      for (const bool headers : {false, true}) {
        NewJob job{.id = id, .key = key, .payload = "the payload"};
        if (headers) job.headers = {{"a", "1"}, {"empty", ""}};
        const std::string bytes = Encoded(job);
        JobView body;
        ASSERT_TRUE(DecodeBody(bytes, body));
        EXPECT_EQ(body.own_id, id);
        EXPECT_EQ(body.key, key);
        EXPECT_EQ(body.payload, "the payload");
        EXPECT_EQ(body.headers.size(), job.headers.size());
        EXPECT_EQ(DecodeId(bytes).own_id, id);
        EXPECT_EQ(DecodeId(bytes).key, key);
        EXPECT_EQ(DecodeId(bytes).fingerprint, id.empty() ? 0 : Fingerprint(job));
        EXPECT_EQ(CountedBytes(bytes), CountedBytes(job));
      }
    }
  }
}

TEST(Body, KeepsWhenACopyWasCreated) {
  NewJob job{.id = "own", .key = "key", .headers = {{"a", "1"}}, .payload = "the payload"};
  EXPECT_EQ(CreatedIn(Encoded(job)), Time{});
  const size_t size = BodySize(job);
  job.restored = std::make_shared<Restored>();
  EXPECT_EQ(BodySize(job), size) << "it does not say when";
  job.restored->created = FromMs(1'700'000'000'123);
  const std::string bytes = WithPayload(Encoded(job), "another");
  EXPECT_EQ(CreatedIn(bytes), job.restored->created);
  JobView body;
  ASSERT_TRUE(DecodeBody(bytes, body));
  EXPECT_EQ(std::tuple(body.own_id, body.key, body.payload), std::tuple("own", "key", "another"));
  DecodeTexts(bytes, body);
  EXPECT_EQ(body.payload, "another");
  EXPECT_EQ(DecodeId(bytes).fingerprint, Fingerprint(job));
  EXPECT_EQ(CountedBytes(bytes),
            CountedBytes(NewJob{.id = "own", .key = "key", .headers = job.headers, .payload = "another"}))
      << "a topic's capacity does not count it";
}

TEST(Body, TakesAnotherPayload) {
  const NewJob job{.id = "own", .key = "key", .headers = {{"a", "1"}}, .payload = "old"};
  NewJob changed = job;
  changed.payload = "a longer one";
  const std::string bytes = WithPayload(Encoded(job), "a longer one");
  JobView body;
  ASSERT_TRUE(DecodeBody(bytes, body));
  EXPECT_EQ(body.payload, "a longer one");
  EXPECT_EQ(body.own_id, "own");
  EXPECT_EQ(DecodeId(bytes).fingerprint, Fingerprint(job))
      << "what was submitted does not change with what was amended";
  EXPECT_EQ(CountedBytes(bytes), CountedBytes(changed));
}

TEST(Body, RefusesWhatIsCutOff) {
  const NewJob job{.id = "own", .key = "key", .headers = {{"a", "1"}}};
  const std::string bytes = Encoded(job);
  JobView body;
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(DecodeBody(std::string_view(bytes).substr(0, size), body)) << size;
  }
  EXPECT_FALSE(DecodeBody("\xFF", body)) << "unknown flags";
}

}  // namespace
}  // namespace tocsin::journal
