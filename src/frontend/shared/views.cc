#include "frontend/shared/views.h"

#include <numeric>

#include "core/figures.h"
#include "model/names.h"

namespace tocsin::shared {
namespace {

using api::FieldKind;

void ShowDue(ValueWriter& out, Time due) { due == kNever ? out.Null() : out.Number(ToMs(due)); }

template <Time JobView::* member>
bool HasTime(const JobView& job) {
  return job.*member != Time{};
}

template <Time JobView::* member>
void ShowTime(ValueWriter& out, const JobView& job) {
  out.Number(ToMs(job.*member));
}

bool IsLeased(const JobView& job) { return job.state == State::kLeased; }

void ShowHeaders(ValueWriter& out, const std::vector<HeaderView>& headers) {
  out.Object(headers.size());
  for (const HeaderView& header : headers) out.Member(header.name, header.value);
  out.EndObject();
}

constexpr JobMember kJobMembers[] = {
    {.name = "id",
     .kind = FieldKind::kText,
     .doc = "The job's own id, or the server's.",
     .show = [](ValueWriter& out, const JobView& job) { out.Text(job.own_id.empty() ? UidText(job.uid) : job.own_id); },
     .in_leases = true},
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
     .show = [](ValueWriter& out, const JobView& job) { out.Number(job.attempt); },
     .in_leases = true},
    {.name = "max_attempts",
     .kind = FieldKind::kNumber,
     .doc = "Deliveries before the job becomes a dead letter.",
     .show = [](ValueWriter& out, const JobView& job) { out.Number(job.max_attempts); },
     .in_leases = true},
    {.name = "due_ms",
     .kind = FieldKind::kMoment,
     .doc = "Milliseconds UTC; null for a job that waits for a count alone.",
     .show = [](ValueWriter& out, const JobView& job) { ShowDue(out, job.due); }},
    {.name = "lease_deadline_ms",
     .kind = FieldKind::kMillis,
     .doc = "When the lease ends, in milliseconds UTC.",
     .there = IsLeased,
     .show = ShowTime<&JobView::lease_deadline>,
     .in_leases = true},
    {.name = "leased_ms",
     .kind = FieldKind::kMillis,
     .doc = "When the lease began, in milliseconds UTC.",
     .there = [](const JobView& job) { return IsLeased(job) && HasTime<&JobView::leased>(job); },
     .show = ShowTime<&JobView::leased>,
     .delivered = false,
     .in_leases = true},
    {.name = "extensions",
     .kind = FieldKind::kNumber,
     .doc = "How often the lease was extended.",
     .there = IsLeased,
     .show = [](ValueWriter& out, const JobView& job) { out.Number(job.extensions); },
     .delivered = false,
     .in_leases = true},
    {.name = "holder",
     .kind = FieldKind::kText,
     .doc = "Who holds the lease: the name of the consumer, its address, or the topic's sink.",
     .there = [](const JobView& job) { return IsLeased(job) && !job.holder.empty(); },
     .show = [](ValueWriter& out, const JobView& job) { out.Text(job.holder); },
     .delivered = false,
     .in_leases = true},
    {.name = "created_ms",
     .kind = FieldKind::kMillis,
     .doc = "When the job was submitted, in milliseconds UTC.",
     .there = HasTime<&JobView::created>,
     .show = ShowTime<&JobView::created>,
     .delivered = false},
    {.name = "last_attempt_ms",
     .kind = FieldKind::kMillis,
     .doc = "When its last attempt began, in milliseconds UTC.",
     .there = HasTime<&JobView::last_attempt>,
     .show = ShowTime<&JobView::last_attempt>,
     .delivered = false},
    {.name = "died_ms",
     .kind = FieldKind::kMillis,
     .doc = "When it became a dead letter, in milliseconds UTC.",
     .there = HasTime<&JobView::died>,
     .show = ShowTime<&JobView::died>,
     .delivered = false},
    {.name = "finished_ms",
     .kind = FieldKind::kMillis,
     .doc = "When it was done or cancelled, in milliseconds UTC.",
     .there = HasTime<&JobView::finished>,
     .show = ShowTime<&JobView::finished>,
     .delivered = false},
    {.name = "key",
     .kind = FieldKind::kText,
     .doc = "The job's key.",
     .there = [](const JobView& job) { return !job.key.empty(); },
     .show = [](ValueWriter& out, const JobView& job) { out.Text(job.key); },
     .in_leases = true},
    {.name = "headers",
     .kind = FieldKind::kHeaders,
     .doc = "The job's headers.",
     .there = [](const JobView& job) { return !job.headers.empty(); },
     .show = [](ValueWriter& out, const JobView& job) { ShowHeaders(out, job.headers); }},
    {.name = "payload", .kind = FieldKind::kPayload, .doc = "The payload; not for callers that may only observe."},
};

void ShowMembers(ValueWriter& out, const JobView& job, bool JobMember::* wanted, bool with_payload = true) {
  const auto is_there = [&](const JobMember& member) {
    if (member.show == nullptr && !with_payload) return false;
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

/// Its scheme, host and port, and "/..." for the rest.
std::string OriginOf(std::string_view url) {
  constexpr std::string_view kAfterScheme = "://";
  const size_t scheme = url.find(kAfterScheme);
  if (scheme == std::string_view::npos) return "...";
  const size_t end = std::min(url.find_first_of("/?#", scheme + kAfterScheme.size()), url.size());
  const std::string_view origin = url.substr(0, end);
  if (origin.contains('@')) return "...";  // no sink takes a password here, but it must not be shown
  const std::string_view rest = url.substr(end);
  if (rest.empty() || rest == "/") return std::string(url);
  return fmt::format("{}/...", origin);
}

/// Also what was not set: the defaults are what holds.
void ShowDelivery(ValueWriter& out, const Delivery& delivery, bool whole_urls) {
  const auto fields = delivery.Pushes() ? DeliveryFieldsOf(delivery.sink) : std::vector<const DeliveryField*>();
  out.Object(1 + fields.size());
  out.Member("sink", delivery.Pushes() ? std::string_view(delivery.sink) : "pull");
  for (const DeliveryField* field : fields) {
    switch (field->kind) {
      case DeliveryFieldKind::kText:
        if (field->name == "url" && !whole_urls) {
          out.Member(field->name, std::string_view(OriginOf(delivery.Text(field->name))));
        } else {
          out.Member(field->name, delivery.Text(field->name));
        }
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

void ShowSettings(ValueWriter& out, const Topic& topic, bool whole_urls) {
  out.Member("topic", std::string_view(topic.name));
  for (const TopicSetting& setting : TopicSettings()) {
    const uint64_t value = setting.get(topic);
    setting.kind == SettingKind::kFlag ? out.Member(setting.name, value != 0) : out.Member(setting.name, value);
  }
  out.Name("delivery");
  ShowDelivery(out, topic.delivery, whole_urls);
}

void Optional(ValueWriter& out, std::string_view name, std::optional<uint64_t> value) {
  out.Name(name);
  value ? out.Number(static_cast<int64_t>(*value)) : out.Null();
}

void ShowRecord(ValueWriter& out, const Member& each) {
  out.Member("id", std::string_view(each.id));
  out.Member("http", std::string_view(each.http));
  out.Member("resp", std::string_view(each.resp));
  out.Name("version");
  each.version.empty() ? out.Null() : out.Text(each.version);
  out.Member("joined_ms", ToMs(each.joined));
  out.Member("heard_ms", ToMs(each.heard));
}

void ShowMember(ValueWriter& out, const ClusterMember& each) {
  out.Object(9);
  ShowRecord(out, each.member);
  out.Member("groups", each.groups);
  Optional(out, "slots", each.slots);
  out.Member("self", each.self);
  out.EndObject();
}

void ShowLost(ValueWriter& out, const Member& each) {
  out.Object(6);
  ShowRecord(out, each);
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

/// Three members.
void ShowCounts(ValueWriter& out, const LoadCounts& counts) {
  out.Member("due", counts.due);
  out.Member("total", std::accumulate(counts.jobs.begin(), counts.jobs.end(), uint64_t{0}));
  out.Name("jobs");
  out.Array(counts.jobs.size());
  for (const uint64_t jobs : counts.jobs) out.Number(static_cast<int64_t>(jobs));
  out.EndArray();
}

}  // namespace

std::span<const JobMember> JobMembers() { return kJobMembers; }

void Show(ValueWriter& out, const JobView& job, bool with_payload) {
  ShowMembers(out, job, &JobMember::shown, with_payload);
}

void ShowDelivered(ValueWriter& out, const JobView& job) { ShowMembers(out, job, &JobMember::delivered); }

void ShowLease(ValueWriter& out, std::string_view topic, const JobView& job) {
  const auto is_there = [&](const JobMember& member) {
    return member.in_leases && (member.there == nullptr || member.there(job));
  };
  out.Object(1 + static_cast<size_t>(std::ranges::count_if(kJobMembers, is_there)));
  out.Member("topic", topic);
  for (const JobMember& member : kJobMembers) {
    if (!is_there(member)) continue;
    out.Name(member.name);
    member.show(out, job);
  }
  out.EndObject();
}

void Show(ValueWriter& out, const Topic& topic, bool whole_urls) {
  out.Object(SettingsCount());
  ShowSettings(out, topic, whole_urls);
  out.EndObject();
}

void Show(ValueWriter& out, const TopicReport& report, bool whole_urls) {
  out.Object(SettingsCount() + 3);
  ShowSettings(out, report.figures.topic, whole_urls);
  out.Name("figures");
  ShowFigures(out, report.figures);
  out.Name("lateness_ms");
  Show(out, report.lateness);
  out.Name("oldest_age_ms");
  report.oldest_age < Millis(0) ? out.Null() : out.Number(report.oldest_age.count());
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
  out.Object(7);
  out.Member("store", std::string_view(report.store));
  out.Member("node", std::string_view(report.node));
  ShowArray(out, "members", report.members, ShowMember);
  ShowArray(out, "lost", report.lost, ShowLost);
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

void Show(ValueWriter& out, const TallyReport& tally) {
  out.Object(4);
  out.Member("total", tally.total);
  out.Member("looked", tally.looked);
  out.Name("groups");
  out.Array(tally.groups.size());
  for (const auto& [value, count] : tally.groups) {
    out.Object(2);
    out.Member("value", std::string_view(value));
    out.Member("count", count);
    out.EndObject();
  }
  out.EndArray();
  out.Member("others", tally.others);
  out.EndObject();
}

size_t BytesMax(const TallyReport& tally) {
  constexpr size_t kGroupMax = 64;  // without its value
  size_t bytes = 2 * kGroupMax;
  for (const auto& [value, count] : tally.groups) bytes += kGroupMax + value.size();
  return bytes;
}

void Show(ValueWriter& out, const OperationReport& report, bool with_payloads) {
  const bool dry = report.id.empty();
  out.Object(9 + (report.error.empty() ? 0 : 1) + (dry ? 2 : 1));
  if (!dry) out.Member("id", std::string_view(report.id));
  out.Member("topic", std::string_view(report.topic));
  out.Member("action", kActionNames[static_cast<size_t>(report.action)]);
  out.Member("state", NameOf(report.state));
  out.Member("looked", report.looked);
  out.Member("of", report.of);
  out.Member("matched", report.matched);
  out.Name("outcomes");
  out.Object(report.outcomes.size());
  for (const auto& [outcome, jobs] : report.outcomes) out.Member(outcome, jobs);
  out.EndObject();
  out.Member("started_ms", ToMs(report.started));
  out.Name("ended_ms");
  report.ended == Time{} ? out.Null() : out.Number(ToMs(report.ended));
  if (!report.error.empty()) out.Member("error", std::string_view(report.error));
  if (dry) {
    out.Member("dry_run", true);
    ShowArray(out, "samples", report.samples->jobs,
              [with_payloads](ValueWriter& to, const JobView& job) { Show(to, job, with_payloads); });
  }
  out.EndObject();
}

void Show(ValueWriter& out, const AlertOrigin& origin, const Alert& alert) {
  const AlertCondition& condition = alert.condition;
  const auto name_or_null = [&out](std::string_view name, const std::string& text) {
    out.Name(name);
    text.empty() ? out.Null() : out.Text(text);
  };
  const auto labels = origin.LabelsOf(alert);
  out.Object(11);
  out.Member("state", kAlertStateNames[static_cast<size_t>(alert.state)]);
  out.Member("rule", condition.rule->name);
  name_or_null("topic", condition.topic);
  name_or_null("node", condition.node);
  out.Name("value");
  out.Real(condition.value);
  out.Name("threshold");
  out.Real(condition.threshold);
  out.Member("summary", std::string_view(SummaryOf(condition)));
  out.Member("starts_ms", ToMs(alert.starts_at));
  out.Name("ends_ms");
  alert.state == AlertState::kResolved ? out.Number(ToMs(alert.ends_at)) : out.Null();
  out.Name("labels");
  out.Object(labels.size());
  for (const auto& [name, value] : labels) out.Member(name, std::string_view(value));
  out.EndObject();
  out.Member("fingerprint", std::string_view(FingerprintOf(labels)));
  out.EndObject();
}

void Show(ValueWriter& out, const AlertRule& rule, double threshold) {
  const auto name_or_null = [&out](std::string_view name, std::string_view text) {
    out.Name(name);
    text.empty() ? out.Null() : out.Text(text);
  };
  out.Object(8);
  out.Member("rule", rule.name);
  out.Member("alertname", rule.alertname);
  out.Member("severity", rule.severity);
  name_or_null("option", rule.option);
  name_or_null("setting", rule.setting);
  out.Name("threshold");
  threshold > 0 ? out.Real(threshold) : out.Null();
  name_or_null("unit", kAlertUnitNames[static_cast<size_t>(rule.unit)]);
  out.Member("summary", rule.summary);
  out.EndObject();
}

size_t BytesMax(const Alert& alert) {
  constexpr size_t kOtherMax = 1024;
  const AlertCondition& condition = alert.condition;
  // Each is shown by itself, in the labels, and up to twice in the summary.
  return kOtherMax + 4 * (condition.topic.size() + condition.node.size() + condition.detail.size());
}

void ShowSums(ValueWriter& out, const LoadReport& report, bool by_topic) {
  out.Object(by_topic ? 7 : 6);
  out.Member("from_ms", ToMs(report.span.from));
  out.Member("to_ms", ToMs(report.span.To()));
  out.Member("step_ms", int64_t{report.span.step.count()});
  ShowCounts(out, report.counts);
  if (!by_topic) return;
  out.Name("topics");
  out.Array(report.largest.size());
}

void EndSums(ValueWriter& out, bool by_topic) {
  if (by_topic) out.EndArray();
  out.EndObject();
}

void Show(ValueWriter& out, const LoadReport::OfTopic& topic) {
  out.Object(4);
  out.Member("topic", std::string_view(topic.topic));
  ShowCounts(out, topic.counts);
  out.EndObject();
}

size_t BytesMax(const LoadReport& report) {
  constexpr size_t kOtherMax = 512;  // of one topic, without its steps
  constexpr size_t kNumberMax = 24;  // with what stands around it
  return (1 + report.largest.size()) * (kOtherMax + kNumberMax * report.span.steps);
}

size_t BytesMax(const JobBatch& batch) {
  constexpr size_t kFramingMax = 32;  // of the batch, and of a header's two texts
  constexpr size_t kJobMax = 512;     // without the texts that are counted below
  size_t bytes = kFramingMax;
  for (const JobView& job : batch.jobs) {
    bytes += kJobMax + CountedBytes(job) + job.reason.size() + job.holder.size() + kFramingMax * job.headers.size();
  }
  return bytes;
}

size_t StepEnd(const JobBatch& batch, size_t from) {
  constexpr size_t kStepJobs = 1000;
  constexpr size_t kStepBytes = 256 << 10;
  const size_t last = std::min(batch.jobs.size(), from + kStepJobs);
  size_t bytes = 0;
  while (from < last && bytes < kStepBytes) bytes += CountedBytes(batch.jobs[from++]);
  return from;
}

size_t BytesMax(const Topic& topic) {
  size_t bytes = kTopicBytes;
  for (const auto& [name, value] : topic.delivery.settings) bytes += name.size() + value.size();
  return bytes;
}

}  // namespace tocsin::shared
