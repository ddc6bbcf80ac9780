#include "spi/contract/coordinator_member.h"

#include <array>
#include <charconv>
#include <ranges>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include "base/result.h"

namespace tocsin {
namespace {

using Report = MemberProcess::Report;
using TimePoint = MemberProcess::TimePoint;

std::array<int, 2> Pipe() {
  std::array<int, 2> ends{};
  TOCSIN_CHECK(pipe2(ends.data(), O_CLOEXEC) == 0);
  return ends;
}

std::vector<std::string> Split(std::string_view text, char by) {
  std::vector<std::string> parts;
  for (const auto part : std::views::split(text, by)) parts.emplace_back(part.begin(), part.end());
  return parts;
}

int64_t Number(std::string_view text) {
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// In the member: one line, in one write.
void Tell(int reports, std::string_view text) {
  const std::string line = fmt::format("{} {}\n", std::chrono::steady_clock::now().time_since_epoch().count(), text);
  TOCSIN_CHECK(write(reports, line.data(), line.size()) == static_cast<ssize_t>(line.size()));
}

std::string Text(std::string_view kind, const Members& members) {
  std::string text = fmt::format("{} {} ", kind, members.joined ? 1 : 0);
  for (const Member& m : members.members) {
    text += fmt::format("{}|{}|{}|{}|{},", m.id, m.http, m.resp, ToMs(m.joined), ToMs(m.heard));
  }
  return text;
}

Report Parse(const std::string& line) {
  const std::vector<std::string> words = Split(line, ' ');
  TOCSIN_CHECK(words.size() >= 3);
  Report report{.at = TimePoint(TimePoint::duration(Number(words[0]))), .ok = words[2] == "1", .text = line};
  report.kind = words[1] == "left" ? Report::Kind::kLeft : Report::Kind::kView;
  if (words[1] == "current") report.kind = Report::Kind::kCurrent;
  if (report.kind == Report::Kind::kLeft) return report;
  report.members.joined = report.ok;
  for (const std::string& text : Split(words.at(3), ',')) {
    if (text.empty()) continue;
    const std::vector<std::string> fields = Split(text, '|');
    report.members.members.push_back({.id = fields.at(0),
                                      .http = fields.at(1),
                                      .resp = fields.at(2),
                                      .joined = FromMs(Number(fields.at(3))),
                                      .heard = FromMs(Number(fields.at(4)))});
  }
  return report;
}

/// On the loop of the member.
void Obey(Coordinator& coordinator, char command, int reports) {
  if (command == 'r') coordinator.Refresh();
  if (command == 'c') Tell(reports, Text("current", coordinator.Current()));
  if (command == 'l') {
    coordinator.Leave([reports](const Status& status) {
      Tell(reports, fmt::format("left {} {}", status ? 1 : 0, status ? "" : status.error().message));
    });
  }
}

/// The life of a member.
void Live(CoordinatorSite& site, Member self, int commands, int reports) {
  Coordinator& coordinator = site.coordinator();
  site.Post([&coordinator, self = std::move(self), reports]() mutable {
    coordinator.Join(std::move(self), [reports](const Members& members) { Tell(reports, Text("view", members)); });
  });
  const std::jthread reader([&site, &coordinator, commands, reports] {
    char command = 0;
    while (read(commands, &command, 1) == 1) {
      site.Post([&coordinator, command, reports] { Obey(coordinator, command, reports); });
    }
    _exit(0);
  });
  site.Run();
}

}  // namespace

MemberProcess::MemberProcess(Member self, const std::function<std::unique_ptr<CoordinatorSite>()>& make_site) {
  const std::array<int, 2> commands = Pipe();
  const std::array<int, 2> reports = Pipe();
  commands_ = commands[1];
  reports_ = reports[0];
  process_ = std::make_unique<ForkedProcess>([&] {
    close(commands[1]);
    close(reports[0]);
    const std::unique_ptr<CoordinatorSite> site = make_site();
    Live(*site, std::move(self), commands[0], reports[1]);
  });
  close(commands[0]);
  close(reports[1]);
}

MemberProcess::~MemberProcess() {
  process_->Kill();
  close(commands_);
  close(reports_);
}

void MemberProcess::Send(char command) { TOCSIN_CHECK(write(commands_, &command, 1) == 1); }

std::optional<Report> MemberProcess::Next(TimePoint deadline) {
  while (!received_.contains('\n')) {
    const auto left = std::chrono::ceil<Millis>(deadline - std::chrono::steady_clock::now());
    pollfd polled{.fd = reports_, .events = POLLIN, .revents = 0};
    if (poll(&polled, 1, static_cast<int>(std::max(Millis(0), left).count())) <= 0) return std::nullopt;
    std::array<char, 4'096> bytes;
    const ssize_t size = read(reports_, bytes.data(), bytes.size());
    if (size <= 0) return Report{.text = "the process of the member has ended"};
    received_.append(bytes.data(), static_cast<size_t>(size));
  }
  const size_t end = received_.find('\n');
  const std::string line = received_.substr(0, end);
  received_.erase(0, end + 1);
  return Parse(line);
}

}  // namespace tocsin
