#include "coordination/zookeeper/roster.h"

#include <algorithm>
#include <set>

#include "base/result.h"
#include "base/text.h"
#include "coordination/shared/membership.h"

namespace tocsin::zookeeper {

std::string NodeName(std::string_view id) {
  std::string name;
  AppendPercent(name, id);
  return name;
}

void Roster::Read(Session& session, OnRead on_read) {
  TOCSIN_CHECK(!reading());
  on_read_ = std::move(on_read);
  session.Children(folder_, [this, &session](Answer answer) { OnNames(session, std::move(answer)); });
}

void Roster::OnNames(Session& session, Answer answer) {
  if (answer.outcome != Outcome::kOk) return End(std::move(answer));
  const std::set<std::string> names(answer.names.begin(), answer.names.end());
  std::erase_if(members_, [&](const auto& entry) { return !entry.second || !names.contains(entry.first); });
  missing_ = 0;
  for (const std::string& name : names) {
    // What is no member's name was put there by somebody else.
    if (members_.contains(name) || !DecodePercent(name, false)) continue;
    members_[name] = std::nullopt;
    ++missing_;
    session.Get(folder_ + "/" + name, [this, name](const Answer& record) { OnRecord(name, record); });
  }
  if (missing_ == 0) End(std::move(answer));
}

void Roster::OnRecord(const std::string& name, const Answer& answer) {
  if (!reading()) return;  // an earlier record was lost with the connection, and the reading with it
  if (answer.outcome == Outcome::kLost) return End(answer);
  if (answer.outcome == Outcome::kNoNode) {
    members_.erase(name);  // gone again; the change will be told
  } else {
    members_[name] = DecodeMember(DecodePercent(name, false).value(), answer.data);
  }
  if (--missing_ == 0) End({.outcome = Outcome::kOk});
}

void Roster::End(Answer answer) {
  std::vector<Member> members;
  for (const auto& [name, member] : members_) {
    if (member) members.push_back(*member);
  }
  std::ranges::sort(members, {}, &Member::id);
  OnRead on_read = std::move(*on_read_);
  on_read_.reset();
  on_read(std::move(answer), std::move(members));
}

}  // namespace tocsin::zookeeper
