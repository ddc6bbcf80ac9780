#include "frontend/shared/views.h"

#include "core/figures.h"
#include "model/names.h"

namespace tocsin::shared {
namespace {

using api::FieldKind;

void ShowDue(ValueWriter& out, Time due) { due == kNever ? out.Null() : out.Number(ToMs(due)); }

void ShowHeaders(ValueWriter& out, const std::vector<HeaderView>& headers) {
  out.Object(headers.size());
  for (const HeaderView& header : headers) out.Member(header.name, header.value);
  out.EndObject();
}

constexpr JobMember kJobMembers[] = {
    {.name = "id",
     .kind = FieldKind::kText,
     .doc = "The job's own id, or the server's.",
     .show = [](ValueWriter& out,
                const JobView& job) { out.Text(job.own_id.empty() ? UidText(job.uid) : job.own_id); }},
    {.name = "token",
     .kind = FieldKind::kText,
     .doc = "The delivery token: it settles this delivery.",
     .show = [](ValueWriter& out, const JobView& job) { out.Text(TokenText(job.token)); },
     .shown = false},
    {.name = "state",
     .kind = FieldKind::kChoice,
     .doc = "A job that is due and waits for a consumer is scheduled.",
     .show = [](ValueWriter& out, const JobView& job) { out.Text(kStateNames[static_cast<size_t>(job.state)]); },
     .delivered = false,
     .choices = kStateNames},
    {.name = "trigger",
     .kind = FieldKind::kChoice,
     .doc = "What makes the job ready.",
     .show = [](ValueWriter& out, const JobView& job) { out.Text(kTriggerNames[static_cast<size_t>(job.trigger)]); },
     .delivered = false,
     .choices = kTriggerNames},
    {.name = "count_left",
     .kind = FieldKind::kNumber,
     .doc = "Events that are still to come.",
     .there = [](const JobView& job) { return job.trigger != Trigger::kTime; },
     .show = [](ValueWriter& out, const JobView& job) { out.Number(job.count_left); },
     .delivered = false},
    {.name = "reason",
     .kind = FieldKind::kText,
     .doc = "Why the job is dead, or why its last attempt failed.",
     .there = [](const JobView& job) { return !job.reason.empty(); },
     .show = [](ValueWriter& out, const JobView& job) { out.Text(job.reason); },
     .delivered = false},
    {.name = "attempt",
     .kind = FieldKind::kNumber,
     .doc = "The number of this delivery; for a job that is not leased, the attempts used up.",
     .show = [](ValueWriter& out, const JobView& job) { out.Number(job.attempt); }},
    {.name = "max_attempts",
     .kind = FieldKind::kNumber,
     .doc = "Deliveries before the job becomes a dead letter.",
     .show = [](ValueWriter& out, const JobView& job) { out.Number(job.max_attempts); }},
    {.name = "due_ms",
     .kind = FieldKind::kMoment,
     .doc = "Milliseconds UTC; null for a job that waits for a count alone.",
     .show = [](ValueWriter& out, const JobView& job) { ShowDue(out, job.due); }},
    {.name = "lease_deadline_ms",
     .kind = FieldKind::kMillis,
     .doc = "When the lease ends, in milliseconds UTC.",
     .there = [](const JobView& job) { return job.state == State::kLeased; },
     .show = [](ValueWriter& out, const JobView& job) { out.Number(ToMs(job.lease_deadline)); }},
    {.name = "key",
     .kind = FieldKind::kText,
     .doc = "The job's key.",
     .there = [](const JobView& job) { return !job.key.empty(); },
     .show = [](ValueWriter& out, const JobView& job) { out.Text(job.key); }},
    {.name = "headers",
     .kind = FieldKind::kHeaders,
     .doc = "The job's headers.",
     .there = [](const JobView& job) { return !job.headers.empty(); },
     .show = [](ValueWriter& out, const JobView& job) { ShowHeaders(out, job.headers); }},
    {.name = "payload", .kind = FieldKind::kPayload, .doc = "The payload."},
};

void ShowMembers(ValueWriter& out, const JobView& job, bool JobMember::* wanted) {
  const auto is_there = [&](const JobMember& member) {
    return member.*wanted && (member.there == nullptr || member.there(job));
  };
  out.Object(static_cast<size_t>(std::ranges::count_if(kJobMembers, is_there)));
  for (const JobMember& member : kJobMembers) {
    if (!is_there(member)) continue;
    if (member.show == nullptr) {
      out.Payload(job.payload);
      continue;
    }
    out.Name(member.name);
    member.show(out, job);
  }
  out.EndObject();
}

/// Also what was not set: the defaults are what holds.
void ShowDelivery(ValueWriter& out, const Delivery& delivery) {
  const auto fields = delivery.Pushes() ? DeliveryFieldsOf(delivery.sink) : std::vector<const DeliveryField*>();
  out.Object(1 + fields.size());
  out.Member("sink", delivery.Pushes() ? std::string_view(delivery.sink) : "pull");
  for (const DeliveryField* field : fields) {
    switch (field->kind) {
      case DeliveryFieldKind::kText:
        out.Member(field->name, delivery.Text(field->name));
        break;
      case DeliveryFieldKind::kNumber:
      case DeliveryFieldKind::kMillis:
        out.Member(field->name, delivery.Number(field->name));
        break;
      case DeliveryFieldKind::kFlag:
        out.Member(field->name, delivery.Flag(field->name));
        break;
    }
  }
  out.EndObject();
}

/// The members that ShowSettings writes: the name, the settings and the delivery.
size_t SettingsCount() { return 2 + TopicSettings().size(); }

void ShowSettings(ValueWriter& out, const Topic& topic) {
  out.Member("topic", std::string_view(topic.name));
  for (const TopicSetting& setting : TopicSettings()) {
    const uint64_t value = setting.get(topic);
    setting.kind == SettingKind::kFlag ? out.Member(setting.name, value != 0) : out.Member(setting.name, value);
  }
  out.Name("delivery");
  ShowDelivery(out, topic.delivery);
}

void Optional(ValueWriter& out, std::string_view name, std::optional<uint64_t> value) {
  out.Name(name);
  value ? out.Number(static_cast<int64_t>(*value)) : out.Null();
}

void ShowMember(ValueWriter& out, const ClusterMember& each) {
  out.Object(8);
  out.Member("id", std::string_view(each.member.id));
  out.Member("http", std::string_view(each.member.http));
  out.Member("resp", std::string_view(each.member.resp));
  out.Member("joined_ms", ToMs(each.member.joined));
  out.Member("heard_ms", ToMs(each.member.heard));
  out.Member("groups", each.groups);
  Optional(out, "slots", each.slots);
  out.Member("self", each.self);
  out.EndObject();
}

void ShowGroup(ValueWriter& out, const GroupState& each) {
  out.Object(5);
  out.Member("group", each.group);
  out.Name("owner");
  each.owner.empty() ? out.Null() : out.Text(each.owner);
  Optional(out, "epoch", each.epoch);
  Optional(out, "slots", each.slots);
  out.Name("next_due_ms");
  each.next_due ? out.Number(ToMs(*each.next_due)) : out.Null();
  out.EndObject();
}

void ShowServer(ValueWriter& out, const StoreServer& each) {
  out.Object(5);
  out.Member("endpoint", std::string_view(each.endpoint));
  out.Member("role", std::string_view(each.role));
  out.Member("connected", each.connected);
  out.Member("state", std::string_view(each.state));
  out.Member("round_trip_ms", int64_t{each.round_trip.count()});
  out.EndObject();
}

template <class Items, class ShowOne>
void ShowArray(ValueWriter& out, std::string_view name, const Items& items, ShowOne show) {
  out.Name(name);
  out.Array(items.size());
  for (const auto& item : items) show(out, item);
  out.EndArray();
}

}  // namespace

std::span<const JobMember> JobMembers() { return kJobMembers; }

void Show(ValueWriter& out, const JobView& job) { ShowMembers(out, job, &JobMember::shown); }

void ShowDelivered(ValueWriter& out, const JobView& job) { ShowMembers(out, job, &JobMember::delivered); }

void Show(ValueWriter& out, const Topic& topic) {
  out.Object(SettingsCount());
  ShowSettings(out, topic);
  out.EndObject();
}

void Show(ValueWriter& out, const TopicReport& report) {
  out.Object(SettingsCount() + 2);
  ShowSettings(out, report.figures.topic);
  out.Name("figures");
  ShowFigures(out, report.figures);
  out.Name("lateness_ms");
  Show(out, report.lateness);
  out.EndObject();
}

void ShowFigures(ValueWriter& out, const TopicFigures& figures) {
  out.Object(std::size(kFigureColumns));
  for (const FigureColumn& column : kFigureColumns) out.Member(column.name, figures.*column.value);
  out.EndObject();
}

void Show(ValueWriter& out, const Lateness& lateness) {
  out.Object(5);
  out.Member("count", lateness.count);
  const std::pair<std::string_view, double> figures[] = {
      {"p50", lateness.p50}, {"p99", lateness.p99}, {"p999", lateness.p999}, {"max", lateness.max}};
  for (const auto& [name, seconds] : figures) {
    out.Name(name);
    out.Real(seconds * 1e3);
  }
  out.EndObject();
}

void Show(ValueWriter& out, const Probed& probed) {
  const Delivered& delivered = probed.delivered;
  out.Object(delivered.reason.empty() ? 2 : 3);
  out.Member("outcome", kDeliverOutcomeNames[static_cast<size_t>(delivered.outcome)]);
  if (!delivered.reason.empty()) out.Member("reason", std::string_view(delivered.reason));
  out.Member("took_ms", int64_t{probed.took.count()});
  out.EndObject();
}

void Show(ValueWriter& out, const ClusterReport& report) {
  out.Object(6);
  out.Member("store", std::string_view(report.store));
  out.Member("node", std::string_view(report.node));
  ShowArray(out, "members", report.members, ShowMember);
  ShowArray(out, "groups", report.groups, ShowGroup);
  out.Name("coordinator");
  out.Object(3);
  out.Member("kind", std::string_view(report.coordinator.kind));
  out.Member("connected", report.coordinator.connected);
  out.Member("state", std::string_view(report.coordinator.state));
  out.EndObject();
  ShowArray(out, "servers", report.servers, ShowServer);
  out.EndObject();
}

size_t BytesMax(const JobBatch& batch) {
  constexpr size_t kFramingMax = 32;  // of the batch, and of a header's two texts
  constexpr size_t kJobMax = 512;     // without the texts that are counted below
  size_t bytes = kFramingMax;
  for (const JobView& job : batch.jobs) {
    bytes += kJobMax + CountedBytes(job) + job.reason.size() + kFramingMax * job.headers.size();
  }
  return bytes;
}

size_t BytesMax(const Topic& topic) {
  constexpr size_t kTopicMax = 3072;  // without the texts that are counted below
  size_t bytes = kTopicMax + topic.name.size();
  for (const auto& [name, value] : topic.delivery.settings) bytes += name.size() + value.size();
  return bytes;
}

}  // namespace tocsin::shared
