// OperationsTest: what the tests of lists, tallies and operations share. One node, over one shard and over several.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/service.h"
#include "core/test_node.h"

namespace tocsin {

class OperationsTest : public testing::TestWithParam<size_t> {
 protected:
  /// Jobs 0, 1, ... with the key k0 or k1, due one second after the other, the last first.
  void SubmitJobs(size_t count, const std::string& topic = "t") {
    for (size_t i = 0; i < count; ++i) {
      const std::string id = std::to_string(i);
      const std::string key = "k" + std::to_string(i % 2);
      NewJob job{.id = id, .key = key, .delay = Millis(1000 * (count - i)), .headers = {{"n", id}}, .payload = id};
      ASSERT_TRUE(node.Submit(topic, {job}));
    }
  }
  void Bury(size_t count, std::string_view reason) {
    const auto batch = node.Reserve("t", count);
    ASSERT_EQ(batch->jobs.size(), count);
    for (const JobView& job : batch->jobs) {
      ASSERT_TRUE(node.Settle("t", {{.token = job.token, .kind = SettleKind::kBury, .reason = reason}}));
    }
  }
  Result<Page> List(ListRequest request) {
    TestNode::Reply<Page> page;
    node.service->List(node.at(1), std::move(request), page.Catch());
    node.Run();
    return std::move(*page.got);
  }
  /// All pages.
  std::vector<std::string> Ids(ListRequest request) {
    std::vector<std::string> ids;
    do {
      auto page = List(request);
      EXPECT_TRUE(page) << page.error().message;
      if (!page) return ids;
      EXPECT_LE(page->jobs.jobs.size(), request.limit);
      for (const JobView& job : page->jobs.jobs) ids.push_back(job.Id());
      request.cursor = page->cursor;
    } while (!request.cursor.empty());
    return ids;
  }
  TallyReport Tally(TallyRequest request) {
    TestNode::Reply<TallyReport> reply;
    node.service->Tally(node.at(1), std::move(request), reply.Catch());
    node.Run();
    EXPECT_TRUE(*reply.got);
    return **reply.got;
  }
  Result<OperationReport> Operate(OperateRequest request) {
    request.topic = "t";
    TestNode::Reply<OperationReport> reply;
    node.service->Operate(node.at(1), std::move(request), reply.Catch());
    node.Run();
    return std::move(*reply.got);
  }
  OperationReport Show(const std::string& id) {
    TestNode::Reply<OperationReport> reply;
    node.service->ShowOperation(node.at(1), "t", id, reply.Catch());
    node.Run();
    EXPECT_TRUE(*reply.got);
    return **reply.got;
  }
  OperationReport Ended(OperateRequest request) {
    const auto begun = Operate(std::move(request));
    EXPECT_TRUE(begun) << begun.error().message;
    if (!begun) return {};
    const OperationReport report = Show(begun->id);
    EXPECT_EQ(report.state, OperationState::kDone) << report.error;
    return report;
  }
  uint64_t Scheduled() { return node.Topics()[0].scheduled; }

  TestNode node{GetParam()};
};

}  // namespace tocsin
