// The limits of requests, checked before anything is done: an error names the field and the limit. In a batch the
// message begins with the index of the bad item, and nothing of the batch is done. Pure functions.
#pragma once

#include "base/result.h"
#include "core/requests.h"

namespace tocsin {

Status Validate(const NewJob& job, const Limits& limits, Moment now);
Status Validate(const Settlement& settlement, const Limits& limits);
Status Validate(const Amendment& amendment, const Limits& limits, Moment now);
Status Validate(const CountEvent& event);
Status Validate(const JobRef& job);

Status Validate(const SubmitRequest& request, const Limits& limits, Moment now);
Status Validate(const ReserveRequest& request, const Limits& limits);
Status Validate(const SettleRequest& request, const Limits& limits);
Status Validate(const AmendRequest& request, const Limits& limits, Moment now);
Status Validate(const CountRequest& request, const Limits& limits);
Status Validate(const FindRequest& request, const Limits& limits);
Status Validate(const ListRequest& request);
Status Validate(const Selector& what);
/// kInvalidArgument for what contradicts itself, such as a reschedule without a time.
Status Validate(const OperateRequest& request, Moment now);

}  // namespace tocsin
