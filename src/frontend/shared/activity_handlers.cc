#include "frontend/shared/activity_handlers.h"

#include <algorithm>

#include "frontend/shared/activity_views.h"
#include "frontend/shared/answers.h"
#include "frontend/shared/views.h"
#include "model/names.h"

namespace tocsin::shared {
namespace {

constexpr int64_t kPageDefault = 100;

}  // namespace

bool AsksForPage(const api::Arguments& arguments) {
  return arguments.limit || arguments.offset || !arguments.filter.empty() || !arguments.topic_sort.empty() ||
         !arguments.order.empty();
}

void ShowTopicsPage(Call call) {
  const api::Arguments& asked = call.arguments;
  TopicsPageRequest request{.prefix = std::move(call.prefix),
                            .filter = std::string(asked.filter),
                            .descending = asked.order == kOrderNames[1],
                            .offset = static_cast<size_t>(asked.offset.value_or(0)),
                            .limit = static_cast<size_t>(asked.limit.value_or(kPageDefault))};
  if (!asked.topic_sort.empty()) {
    request.sort = static_cast<TopicSort>(std::ranges::find(kTopicSortNames, asked.topic_sort) - kTopicSortNames);
  }
  const auto answer = std::make_shared<LongAnswer>(call.service, call.loop, std::move(call.reply));
  // Before the work: the topics that are read for the page take about as much as the answer.
  const size_t topics = std::min(request.limit, call.service.CountTopics(call.loop, request.prefix));
  if (const Status room = answer->reply->MakeRoom(topics * kTopicBytes); !room) {
    return answer->reply->Fail(room.error());
  }
  const auto begin = [answer, whole_urls = call.sees_whole_urls](TopicsPageReport& page) {
    size_t bytes = kTopicBytes;
    for (const TopicReport& topic : page.topics) bytes += BytesMax(topic.figures.topic);
    if (const Status room = answer->reply->MakeRoom(bytes); !room) return answer->reply->Fail(room.error());
    ValueWriter& out = answer->reply->Begin();
    out.Object(2);
    out.Member("total", uint64_t{page.total});
    out.Name("topics");
    out.Array(page.topics.size());
    answer->step = [&out, whole_urls, topics = std::move(page.topics)]() mutable {
      constexpr size_t kEach = 32;
      for (size_t i = 0; i < kEach && !topics.empty(); ++i, topics.pop_front()) {
        Show(out, topics.front(), whole_urls);
      }
      if (!topics.empty()) return true;
      out.EndArray();
      out.EndObject();
      return false;
    };
    WriteOn(answer);
  };
  call.service.TopicsPage(call.loop, std::move(request), [answer, begin](Result<TopicsPageReport> page) {
    const auto connection = answer->reply->connection();
    connection->Guard([&] { page ? begin(*page) : answer->reply->Fail(page.error()); });
  });
}

void ShowHistory(Call call) {
  const auto send = [](Reply& reply, const HistoryReport& report) {
    if (const Status room = reply.MakeRoom(BytesMax(report)); !room) return reply.Fail(room.error());
    Show(reply.Begin(), report);
    reply.Send();
  };
  call.service.History(call.loop, call.topic, Answer<HistoryReport>(std::move(call.reply), send));
}

void ShowLateness(Call call) {
  const auto send = [](Reply& reply, const metrics::Histogram::Snapshot& lateness) {
    if (const Status room = reply.MakeRoom(kLatenessBytes); !room) return reply.Fail(room.error());
    Show(reply.Begin(), lateness);
    reply.Send();
  };
  call.service.ShowLateness(call.loop, call.topic, Answer<metrics::Histogram::Snapshot>(std::move(call.reply), send));
}

void ListDeliveries(Call call) {
  DeliveriesRequest request{.prefix = std::move(call.prefix),
                            .after = std::string(call.arguments.cursor),
                            .limit = static_cast<size_t>(call.arguments.limit.value_or(kPageDefault))};
  const auto send = [](Reply& reply, const DeliveriesPage& page) {
    if (const Status room = reply.MakeRoom(BytesMax(page)); !room) return reply.Fail(room.error());
    ValueWriter& out = reply.BeginPage("deliveries", page.cursor, page.deliveries.size());
    for (const DeliveryReport& each : page.deliveries) Show(out, each);
    reply.Send();
  };
  call.service.Deliveries(call.loop, std::move(request), Answer<DeliveriesPage>(std::move(call.reply), send));
}

}  // namespace tocsin::shared
