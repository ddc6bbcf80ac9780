#include "spi/contract/sink_contract.h"

#include <algorithm>
#include <cstring>

namespace tocsin {
namespace {

constexpr std::string_view kPayloadMark = "opaque-7d1c";

/// Every view of the batch points into bytes that it owns, as those of a store do.
std::string_view Keep(JobBatch& batch, std::string_view text) {
  auto& bytes = batch.bytes.emplace_back(std::make_unique<char[]>(text.size()));
  std::memcpy(bytes.get(), text.data(), text.size());
  return {bytes.get(), text.size()};
}

std::shared_ptr<const JobBatch> MakeBatch(const std::vector<ContractJob>& jobs) {
  auto batch = std::make_shared<JobBatch>();
  for (const ContractJob& job : jobs) {
    JobView view;
    view.uid = job.uid;
    view.own_id = Keep(*batch, job.own_id);
    view.key = Keep(*batch, job.key);
    view.state = State::kLeased;
    view.due = job.due;
    view.attempt = job.attempt;
    view.max_attempts = 16;
    view.token = job.token;
    view.payload = Keep(*batch, job.payload);
    for (const auto& [name, value] : job.headers) view.headers.push_back({Keep(*batch, name), Keep(*batch, value)});
    batch->jobs.push_back(std::move(view));
  }
  return batch;
}

}  // namespace

void PrintTo(const ReceivedJob& job, std::ostream* out) {
  *out << job.id << " of " << job.topic << ", key \"" << job.key << "\", attempt " << job.attempt << ", due "
       << job.due_ms << ", token " << job.token << ", " << job.payload.size() << " bytes, headers";
  for (const auto& [name, value] : job.headers) *out << ' ' << name << '=' << value;
}

void SinkContract::SetUp() {
  Result<std::unique_ptr<SinkWorld>> world = GetParam()();
  if (!world && world.error().code == Code::kUnavailable) GTEST_SKIP() << world.error().message;
  ASSERT_TRUE(world) << world.error().message;
  world_ = std::move(*world);
}

void SinkContract::TearDown() {
  if (sink_ != nullptr) Close(kSoon);
}

void SinkContract::Open(Topic topic, Millis timeout) {
  topic_ = std::move(topic);
  topic_.delivery.settings.insert_or_assign("timeout_ms", std::to_string(timeout.count()));
  ASSERT_TRUE(Validate(topic_));
  OnLoop([this] {
    Result<std::unique_ptr<Sink>> sink = world_->Open(topic_);
    ASSERT_TRUE(sink) << sink.error().message;
    sink_ = std::move(*sink);
  });
}

void SinkContract::OnLoop(const std::function<void()>& work) {
  bool ran = false;
  world_->loop().Post([&] {
    work();
    ran = true;
  });
  ASSERT_TRUE(world_->RunUntil([&ran] { return ran; }, kSoon));
}

ContractJob SinkContract::MakeJob() {
  const uint64_t number = ++made_;
  return {.uid = 0x5000'0000 + number,
          .own_id = fmt::format("job-{}", number),
          .key = {},
          .attempt = 1,
          .due = FromMs(1'700'000'000'000 + static_cast<int64_t>(number)),
          .token = {.slot = 3, .handle = number, .fence = 900 + number},
          .headers = {},
          .payload = fmt::format("{} {}", kPayloadMark, number)};
}

std::vector<ContractJob> SinkContract::MakeJobs(size_t count) {
  std::vector<ContractJob> jobs;
  jobs.reserve(count);
  for (size_t i = 0; i < count; ++i) jobs.push_back(MakeJob());
  return jobs;
}

void SinkContract::Deliver(std::vector<ContractJob> jobs) {
  ASSERT_NE(sink_, nullptr);
  std::shared_ptr<const JobBatch> batch = MakeBatch(jobs);
  const size_t first = sent_.size();
  const size_t count = jobs.size();
  for (ContractJob& job : jobs) sent_.push_back({.job = std::move(job)});
  under_way_ += count;
  batches_.push_back(batch);
  OnLoop([this, first, count, &batch] {
    sink_->Deliver(std::move(batch), [this, first, count](size_t index, Delivered delivered) {
      ASSERT_LT(index, count);
      OnAnswer(first + index, std::move(delivered));
    });
  });
}

void SinkContract::OnAnswer(size_t number, Delivered delivered) {
  Sent& sent = sent_[number];
  EXPECT_TRUE(world_->loop().InThread());
  EXPECT_FALSE(closed_) << sent.job.Id() << " was answered after the sink had closed";
  ASSERT_EQ(++sent.answers, 1) << sent.job.Id() << " was answered more than once";
  --under_way_;
  sent.delivered = std::move(delivered);
  const std::string& reason = sent.delivered.reason;
  EXPECT_EQ(reason.empty(), sent.delivered.outcome == DeliverOutcome::kConfirmed) << sent.job.Id() << ": " << reason;
  EXPECT_EQ(reason.find(kPayloadMark), std::string::npos) << reason;
  for (const std::string& secret : world_->secrets()) EXPECT_EQ(reason.find(secret), std::string::npos) << reason;
}

void SinkContract::DeliverAll(std::vector<ContractJob> jobs, size_t batch) {
  batch = std::min(batch, in_flight());
  for (size_t from = 0; from < jobs.size(); from += batch) {
    const size_t count = std::min(batch, jobs.size() - from);
    const auto room = [this, count] { return under_way_ + count <= in_flight(); };
    ASSERT_TRUE(world_->RunUntil(room, kSoon)) << under_way_ << " jobs are still under way";
    const auto begin = jobs.begin() + static_cast<ptrdiff_t>(from);
    Deliver({std::make_move_iterator(begin), std::make_move_iterator(begin + static_cast<ptrdiff_t>(count))});
  }
}

void SinkContract::AwaitAnswers(Millis within) {
  ASSERT_TRUE(world_->RunUntil([this] { return Answered(); }, within)) << under_way_ << " jobs are not answered";
}

const SinkContract::Sent& SinkContract::DeliverOne(Millis within) {
  Deliver(MakeJobs(1));
  AwaitAnswers(within);
  return sent_.back();
}

void SinkContract::AwaitHealth() {
  const auto deadline = std::chrono::steady_clock::now() + kSoon;
  while (std::chrono::steady_clock::now() < deadline && !HasFatalFailure()) {
    if (DeliverOne(kSoon).delivered.outcome == DeliverOutcome::kConfirmed) return;
    RunFor(Millis(20));  // a sink that answers at once while it is away would keep this thread busy
  }
  FAIL() << "nothing is confirmed though the receiver is back: " << sent_.back().delivered.reason;
}

void SinkContract::Close(Millis within) {
  OnLoop([this] {
    sink_->Close([this] {
      EXPECT_TRUE(world_->loop().InThread());
      EXPECT_EQ(under_way_, 0) << "the sink says that it has closed with jobs under way";
      EXPECT_FALSE(closed_);
      closed_ = true;
    });
  });
  EXPECT_TRUE(world_->RunUntil([this] { return closed_; }, within)) << under_way_ << " jobs are not answered";
  if (!closed_) return static_cast<void>(sink_.release());  // NOLINT: it may still be at work; the test has failed
  OnLoop([this] { sink_.reset(); });
  RunFor(Millis(100));
}

void SinkContract::RunFor(Millis time) {
  world_->RunUntil([] { return false; }, time);
}

size_t SinkContract::CountOf(DeliverOutcome outcome) const {
  return static_cast<size_t>(std::ranges::count_if(
      sent_, [outcome](const Sent& sent) { return sent.answers > 0 && sent.delivered.outcome == outcome; }));
}

size_t SinkContract::BatchesHeld() const {
  return static_cast<size_t>(std::ranges::count_if(batches_, [](const auto& batch) { return !batch.expired(); }));
}

std::vector<ReceivedJob> SinkContract::Received() {
  Result<std::vector<ReceivedJob>> received = world_->Received();
  EXPECT_TRUE(received) << received.error().message;
  return received ? std::move(*received) : std::vector<ReceivedJob>();
}

ReceivedJob SinkContract::Expected(const ContractJob& job) const {
  return {.topic = topic_.name,
          .id = job.Id(),
          .key = job.key,
          .attempt = job.attempt,
          .due_ms = ToMs(job.due),
          .token = TokenText(job.token),
          .headers = job.headers,
          .payload = job.payload};
}

void SinkContract::ExpectConfirmedArrived() {
  std::map<std::string, ReceivedJob> arrived;
  for (ReceivedJob& job : Received()) arrived.insert_or_assign(job.id, std::move(job));
  for (const Sent& sent : sent_) {
    const auto at = arrived.find(sent.job.Id());
    if (at == arrived.end()) {
      const bool confirmed = sent.answers > 0 && sent.delivered.outcome == DeliverOutcome::kConfirmed;
      EXPECT_FALSE(confirmed) << sent.job.Id() << " was confirmed, and the receiver lacks it";
      continue;
    }
    EXPECT_EQ(at->second, Expected(sent.job));
    arrived.erase(at);
  }
  for (const auto& [id, job] : arrived) ADD_FAILURE() << id << " arrived and was never sent";
}

}  // namespace tocsin
