#include "server/alert_poster.h"

#include <algorithm>
#include <utility>

#include "base/secrets.h"
#include "base/version.h"
#include "server/alert_body.h"

namespace tocsin {
namespace {

// The operator's own option may name any address. What topics push to is another factory's.
constexpr const char* kAnyAddress = "0.0.0.0/0,::/0";

/// The name that receivers see in the headers of a delivery. No topic can have it: it has a space.
constexpr const char* kPostedAs = "tocsin alerts";

Topic TopicOf(const Config& config) {
  Topic topic = DefaultTopic(kPostedAs);
  topic.delivery.sink = "webhook";
  topic.delivery.settings = {{"url", config.alerts_webhook_url}, {"in_flight", "1"}, {"retry_4xx", "true"}};
  if (!config.alerts_webhook_secret.empty()) topic.delivery.settings.emplace("secret", config.alerts_webhook_secret);
  return topic;
}

/// Of an error that names a field of a delivery.
std::unexpected<Error> OfOption(Error error) {
  const std::string key = error.field == "delivery.secret" ? "alerts.webhook_secret"
                          : error.field == "delivery.url"  ? "alerts.webhook_url"
                                                           : error.field;
  if (const size_t at = error.message.find(error.field); !error.field.empty() && at != std::string::npos) {
    error.message.replace(at, error.field.size(), key);
  }
  error.field = key;
  return std::unexpected(std::move(error));
}

}  // namespace

AlertPoster::AlertPoster(const Config& config, const Clock& clock, metrics::Registry& metrics, AlertBook& book,
                         std::string url)
    : clock_(clock),
      book_(book),
      url_(std::move(url)),
      repeat_(config.alerts_repeat),
      confirmed_(metrics.GetCounter("tocsin_alert_posts_total", "Posts of alerts to alerts.webhook_url.",
                                    {{"outcome", "confirmed"}})),
      failed_(metrics.GetCounter("tocsin_alert_posts_total", "Posts of alerts to alerts.webhook_url.",
                                 {{"outcome", "failed"}})),
      posts_(static_cast<Uid>(ToMs(clock.Now().utc))) {}

Result<std::unique_ptr<AlertPoster>> AlertPoster::Make(const Config& config, net::AsioLoop& loop, const Clock& clock,
                                                       metrics::Registry& metrics, AlertBook& book, std::string url) {
  std::unique_ptr<AlertPoster> poster(new AlertPoster(config, clock, metrics, book, std::move(url)));
  TOCSIN_ASSIGN(poster->factory_,
                webhook::Factory::Make({.allow = kAnyAddress,
                                        .ca_file = config.webhook_ca_file,
                                        .version = std::string(Version()),
                                        .find_secret = [secrets = Secrets(config.secrets_dir)](
                                                           std::string_view name) { return secrets.Find(name); },
                                        .owners = {},
                                        .loops = {&loop},
                                        .connections_max = 2}));
  const Topic topic = TopicOf(config);
  if (Status valid = Validate(topic.delivery); !valid) return OfOption(std::move(valid).error());
  auto sink = poster->factory_->Open(topic, loop);
  if (!sink) return OfOption(std::move(sink).error());
  poster->sink_ = std::move(*sink);
  return poster;
}

std::shared_ptr<const JobBatch> AlertPoster::BatchOf(const std::vector<Alert>& alerts) {
  const std::string body = AlertBody(book_.origin(), alerts, url_);
  JobView job;
  job.uid = ++posts_;
  job.attempt = 1;
  job.due = kNever;
  job.headers = {{"content-type", "application/json"}};
  job.payload = body;
  const auto batch = std::make_shared<JobBatch>();
  Append(*batch, job);
  return batch;
}

void AlertPoster::Post(const std::function<bool(const AlertCondition&)>& mine) {
  if (busy_ || clock_.IoNow() < rest_until_) return;
  std::vector<Alert> alerts = book_.ToPost(clock_.Now().steady, repeat_, kAlertsEach, mine);
  if (alerts.empty()) return;
  busy_ = true;
  const auto batch = BatchOf(alerts);
  sink_->Deliver(batch, [this, alerts = std::move(alerts)](size_t /*index*/, const Delivered& delivered) {
    Answered(alerts, delivered);
  });
}

void AlertPoster::Answered(const std::vector<Alert>& alerts, const Delivered& delivered) {
  busy_ = false;
  const IoTime now = clock_.IoNow();
  if (delivered.outcome == DeliverOutcome::kConfirmed) {
    confirmed_->Add(1);
    book_.Posted(alerts, clock_.Now().steady);
    failing_.End(now);
    rest_ = Millis(0);
    rest_until_ = {};
    return;
  }
  failed_->Add(1);
  const LogField fields[] = {
      {"reason", delivered.quotes ? std::string_view("the receiver does not take it") : delivered.reason}};
  failing_.Begin(now, fields);
  rest_ = std::clamp(rest_ * 2, kRestMin, kRestMax);
  rest_until_ = now + std::max(rest_, std::min(delivered.delay.value_or(rest_), kRestMax));
}

void AlertPoster::Close(Task done) { sink_->Close(std::move(done)); }

}  // namespace tocsin
