// The fields that the verbs about the server and its topics take. Only verbs.cc includes this.
#pragma once

#include <limits>
#include <string_view>

#include "api/verb_fields.h"
#include "model/load.h"
#include "model/names.h"

namespace tocsin::api {

inline constexpr Field kAdvance[] = {
    {.name = "ms",
     .kind = FieldKind::kMillis,
     .max = kDelayMax.count(),
     .doc = "How far to move the clock.",
     .flag = "by",
     .fixed = true,
     .excludes_next = true,
     .member = &Arguments::advance_ms},
    {.name = "to_ms",
     .kind = FieldKind::kMoment,
     .max = std::numeric_limits<int64_t>::max() - 1,
     .doc = "The time to move the clock to, in milliseconds UTC. It never goes back.",
     .flag = "to",
     .member = &Arguments::advance_to_ms},
};

inline constexpr Field kLoadFrom = {.name = "from",
                                    .kind = FieldKind::kMoment,
                                    .max = ToMs(kLoadLast),
                                    .doc =
                                        "When the first step begins, in milliseconds UTC; the minute that it is in "
                                        "counts. Now unless given.",
                                    .word = "FROM",
                                    .flag = "from",
                                    .in = In::kQuery,
                                    .member = &Arguments::from_ms};
inline constexpr Field kLoadTo = {.name = "to",
                                  .kind = FieldKind::kMoment,
                                  .max = ToMs(kLoadLast),
                                  .doc =
                                      "When the last step ends, in milliseconds UTC; the whole step counts. An hour "
                                      "after the beginning unless given.",
                                  .word = "TO",
                                  .flag = "to",
                                  .in = In::kQuery,
                                  .member = &Arguments::to_ms};
inline constexpr Field kLoadStep = {.name = "step",
                                    .kind = FieldKind::kMillis,
                                    .min = kLoadMinute.count(),
                                    .max = kDelayMax.count(),
                                    .doc = "How long a step is: whole minutes. An answer has 10,000 steps at most.",
                                    .fallback = "60000",
                                    .word = "STEP",
                                    .flag = "step",
                                    .in = In::kQuery,
                                    .member = &Arguments::step_ms};
inline constexpr std::string_view kLoadByNames[] = {"all", "topic"};  // in the order of LoadBy

inline constexpr Field kTopicLoad[] = {kLoadFrom, kLoadTo, kLoadStep};
inline constexpr Field kLoad[] = {kLoadFrom,
                                  kLoadTo,
                                  kLoadStep,
                                  {.name = "by",
                                   .kind = FieldKind::kChoice,
                                   .doc = "With topic, the ten topics that have most jobs in all steps are shown too.",
                                   .fallback = "\"all\"",
                                   .choices = kLoadByNames,
                                   .word = "BY",
                                   .flag = "by",
                                   .in = In::kQuery,
                                   .member = &Arguments::load_by}};

inline constexpr int64_t kTopicsPageMax = 1000;

inline constexpr Field kListTopics[] = {
    {.name = "limit",
     .kind = FieldKind::kNumber,
     .min = 1,
     .max = kTopicsPageMax,
     .doc = "The most topics on a page. Any of these fields asks for a page, with 100 topics unless given.",
     .word = "LIMIT",
     .flag = "limit",
     .in = In::kQuery,
     .member = &Arguments::limit},
    {.name = "offset",
     .kind = FieldKind::kNumber,
     .max = 1'000'000,
     .doc = "How many topics come before the page.",
     .fallback = "0",
     .word = "OFFSET",
     .flag = "offset",
     .in = In::kQuery,
     .member = &Arguments::offset},
    {.name = "filter",
     .kind = FieldKind::kName,
     .min = 1,
     .max = kNameMax,
     .doc = "Only topics whose names contain this text.",
     .word = "FILTER",
     .flag = "filter",
     .in = In::kQuery,
     .member = &Arguments::filter},
    {.name = "sort",
     .kind = FieldKind::kChoice,
     .doc =
         "The order: by name, by a figure as of about a second ago, or by how long the first ready job has been due.",
     .fallback = "\"name\"",
     .choices = kTopicSortNames,
     .word = "SORT",
     .flag = "sort",
     .in = In::kQuery,
     .member = &Arguments::topic_sort},
    {.name = "order",
     .kind = FieldKind::kChoice,
     .doc = "Whether the order rises or falls.",
     .fallback = "\"asc\"",
     .choices = kOrderNames,
     .word = "ORDER",
     .flag = "order",
     .in = In::kQuery,
     .member = &Arguments::order},
};

inline constexpr Field kEvents[] = {
    {.name = "kinds",
     .kind = FieldKind::kText,
     .max = 256,
     .doc = "Only events of these kinds, with commas between them.",
     .in = In::kQuery,
     .member = &Arguments::kinds},
    {.name = "topics",
     .kind = FieldKind::kText,
     .max = 16'384,
     .doc = "Only events of these topics, at most 100, with commas between them.",
     .in = In::kQuery,
     .member = &Arguments::topics},
};

inline constexpr Field kDeliveries[] = {
    {.name = "limit",
     .kind = FieldKind::kNumber,
     .min = 1,
     .max = kTopicsPageMax,
     .doc = "The most topics on a page.",
     .fallback = "100",
     .in = In::kQuery,
     .member = &Arguments::limit},
    {.name = "cursor", .doc = "The cursor of the page before.", .in = In::kQuery, .member = &Arguments::cursor},
};

inline constexpr Field kBeginSession[] = {
    {.name = "token",
     .kind = FieldKind::kText,
     .max = 256,
     .doc = "An access token, as `tocsin token create` prints it. A server without authentication does not look at it.",
     .member = &Arguments::access_token}};

}  // namespace tocsin::api
