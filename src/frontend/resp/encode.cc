#include "frontend/resp/encode.h"

#include "core/figures.h"
#include "model/names.h"

namespace tocsin::resp {
namespace {

void WriteDue(Writer& writer, Time due) {
  if (due == kNever) return writer.Null();
  writer.Integer(ToMs(due));
}

void WriteId(Writer& writer, Uid uid, std::string_view own_id) {
  own_id.empty() ? writer.Bulk(UidText(uid)) : writer.Bulk(own_id);
}

void WriteHeaders(Writer& writer, const std::vector<HeaderView>& headers) {
  writer.Map(headers.size());
  for (const HeaderView& header : headers) {
    writer.Bulk(header.name);
    writer.Bulk(header.value);
  }
}

std::string_view WhyNotStored(SubmitOutcome outcome) {
  switch (outcome) {
    case SubmitOutcome::kConflict:
      return "the id is stored with other content";
    case SubmitOutcome::kInFlight:
      return "the job that has the id is being delivered";
    case SubmitOutcome::kOverCapacity:
      return "the topic or the node holds as much as it may";
    case SubmitOutcome::kStorageFull:
      return "the disk is full";
    case SubmitOutcome::kOverloaded:
      return "the job's shard has too much to do; nothing was stored";
    case SubmitOutcome::kAccepted:
    case SubmitOutcome::kDuplicate:
      break;
  }
  return "";
}

void WriteNotStored(Writer& writer, SubmitOutcome outcome) {
  writer.Fail({CodeOf(outcome), fmt::format("{}: {}", NameOf(outcome), WhyNotStored(outcome)), {}});
}

std::string_view WordOf(AmendKind kind) {
  switch (kind) {
    case AmendKind::kCancel:
      return "cancelled";
    case AmendKind::kFire:
      return "fired";
    case AmendKind::kReschedule:
    case AmendKind::kPayload:
      break;
  }
  return "amended";
}

void WriteField(Writer& writer, std::string_view name, uint64_t value) {
  writer.Bulk(name);
  writer.Integer(static_cast<int64_t>(value));
}

/// With what was not set too: the defaults are what holds.
void WriteDelivery(Writer& writer, const Delivery& delivery) {
  const auto fields = delivery.Pushes() ? DeliveryFieldsOf(delivery.sink) : std::vector<const DeliveryField*>();
  writer.Map(1 + fields.size());
  writer.Bulk("sink");
  writer.Bulk(delivery.Pushes() ? delivery.sink : "pull");
  for (const DeliveryField* field : fields) {
    writer.Bulk(field->name);
    switch (field->kind) {
      case DeliveryFieldKind::kText:
        writer.Bulk(delivery.Text(field->name));
        break;
      case DeliveryFieldKind::kNumber:
      case DeliveryFieldKind::kMillis:
        writer.Integer(static_cast<int64_t>(delivery.Number(field->name)));
        break;
      case DeliveryFieldKind::kFlag:
        writer.Bool(delivery.Flag(field->name));
        break;
    }
  }
}

/// The members that WriteSettings writes: the name, the settings and the delivery.
size_t SettingsCount() { return 2 + TopicSettings().size(); }

void WriteSettings(Writer& writer, const Topic& topic) {
  writer.Bulk("topic");
  writer.Bulk(topic.name);
  for (const TopicSetting& setting : TopicSettings()) {
    const uint64_t value = setting.get(topic);
    writer.Bulk(setting.name);
    setting.kind == SettingKind::kFlag ? writer.Bool(value != 0) : writer.Integer(static_cast<int64_t>(value));
  }
  writer.Bulk("delivery");
  WriteDelivery(writer, topic.delivery);
}

void WriteLateness(Writer& writer, const Lateness& lateness) {
  writer.Map(5);
  WriteField(writer, "count", lateness.count);
  const std::pair<std::string_view, double> figures[] = {
      {"p50", lateness.p50}, {"p99", lateness.p99}, {"p999", lateness.p999}, {"max", lateness.max}};
  for (const auto& [name, seconds] : figures) {
    writer.Bulk(name);
    writer.Double(seconds * 1e3);
  }
}

}  // namespace

void WriteSubmitted(Writer& writer, std::span<const Submitted> jobs, std::string_view own_id, bool many) {
  if (many) {
    writer.Array(jobs.size());
    for (const Submitted& job : jobs) {
      IsStored(job.outcome) ? writer.Bulk(UidText(job.uid)) : WriteNotStored(writer, job.outcome);
    }
    return;
  }
  const Submitted& job = jobs.front();
  if (!IsStored(job.outcome)) return WriteNotStored(writer, job.outcome);
  writer.Array(3);
  WriteId(writer, job.uid, own_id);
  writer.Simple(NameOf(job.outcome));
  WriteDue(writer, job.due);
}

void WriteSettled(Writer& writer, std::span<const SettleOutcome> outcomes) {
  writer.Array(outcomes.size());
  for (const SettleOutcome outcome : outcomes) writer.Simple(NameOf(outcome));
}

void WriteAmended(Writer& writer, const Amended& amended, AmendKind kind) {
  if (const auto refusal = RefusalOf(amended.outcome)) return writer.Fail(*refusal);
  const std::string_view outcome = NameOf(amended.outcome, WordOf(kind));
  if (kind == AmendKind::kCancel) return writer.Simple(outcome);
  writer.Array(2);
  writer.Simple(outcome);
  const bool has_due = amended.outcome == AmendOutcome::kDone && amended.due != Time{};
  has_due ? WriteDue(writer, amended.due) : writer.Null();
}

void WriteCounted(Writer& writer, const Counted& counted) {
  if (counted.outcome == CountOutcome::kOverloaded) {
    return writer.Fail({Code::kOverloaded, "the job's shard has too much to do; nothing was counted", {}});
  }
  writer.Array(2);
  writer.Simple(NameOf(counted.outcome));
  writer.Integer(counted.left);
}

void WriteDelivered(Writer& writer, const JobBatch& batch) {
  writer.Array(batch.jobs.size());
  for (const JobView& job : batch.jobs) {
    writer.Array(9);
    WriteId(writer, job.uid, job.own_id);
    writer.Bulk(TokenText(job.token));
    writer.Bulk(job.payload);
    writer.Integer(job.attempt);
    writer.Integer(job.max_attempts);
    WriteDue(writer, job.due);
    writer.Integer(ToMs(job.lease_deadline));
    job.key.empty() ? writer.Null() : writer.Bulk(job.key);
    WriteHeaders(writer, job.headers);
  }
}

size_t DeliveredBytesMax(const JobBatch& batch) {
  constexpr size_t kFramingMax = 32;  // of the batch, of a header's two texts
  constexpr size_t kJobMax = 512;     // besides what is counted below
  size_t bytes = kFramingMax;
  for (const JobView& job : batch.jobs) {
    bytes += kJobMax + job.payload.size() + job.own_id.size() + job.key.size() + job.reason.size();
    for (const HeaderView& header : job.headers) bytes += kFramingMax + header.name.size() + header.value.size();
  }
  return bytes;
}

void WriteJob(Writer& writer, const JobView& job) {
  const bool counts = job.trigger != Trigger::kTime;
  const bool leased = job.state == State::kLeased;
  writer.Map(7 + size_t{counts} + size_t{!job.reason.empty()} + size_t{leased} + size_t{!job.key.empty()} +
             size_t{!job.headers.empty()});
  writer.Bulk("id");
  WriteId(writer, job.uid, job.own_id);
  writer.Bulk("state");
  writer.Bulk(kStateNames[static_cast<size_t>(job.state)]);
  writer.Bulk("trigger");
  writer.Bulk(kTriggerNames[static_cast<size_t>(job.trigger)]);
  if (counts) WriteField(writer, "count_left", job.count_left);
  if (!job.reason.empty()) {
    writer.Bulk("reason");
    writer.Bulk(job.reason);
  }
  WriteField(writer, "attempt", job.attempt);
  WriteField(writer, "max_attempts", job.max_attempts);
  writer.Bulk("due_ms");
  WriteDue(writer, job.due);
  if (leased) WriteField(writer, "lease_deadline_ms", static_cast<uint64_t>(ToMs(job.lease_deadline)));
  if (!job.key.empty()) {
    writer.Bulk("key");
    writer.Bulk(job.key);
  }
  if (!job.headers.empty()) {
    writer.Bulk("headers");
    WriteHeaders(writer, job.headers);
  }
  writer.Bulk("payload");
  writer.Bulk(job.payload);
}

void WriteProbed(Writer& writer, const Probed& probed) {
  const Delivered& delivered = probed.delivered;
  writer.Map(delivered.reason.empty() ? 2 : 3);
  writer.Bulk("outcome");
  writer.Bulk(kDeliverOutcomeNames[static_cast<size_t>(delivered.outcome)]);
  if (!delivered.reason.empty()) {
    writer.Bulk("reason");
    writer.Bulk(delivered.reason);
  }
  WriteField(writer, "took_ms", static_cast<uint64_t>(probed.took.count()));
}

size_t TopicBytesMax(const Topic& topic) {
  constexpr size_t kTopicMax = 3072;  // besides what is counted below
  size_t bytes = kTopicMax + topic.name.size();
  for (const auto& [name, value] : topic.delivery.settings) bytes += name.size() + value.size();
  return bytes;
}

void WriteTopic(Writer& writer, const Topic& topic) {
  writer.Map(SettingsCount());
  WriteSettings(writer, topic);
}

void WriteTopic(Writer& writer, const TopicReport& report) {
  writer.Map(SettingsCount() + 2);
  WriteSettings(writer, report.figures.topic);
  writer.Bulk("figures");
  writer.Map(std::size(kFigureColumns));
  for (const FigureColumn& column : kFigureColumns) WriteField(writer, column.name, report.figures.*column.value);
  writer.Bulk("lateness_ms");
  WriteLateness(writer, report.lateness);
}

}  // namespace tocsin::resp
