#include "sinks/rabbitmq/window.h"

#include <algorithm>
#include <utility>

namespace tocsin::rabbitmq {

void Window::Add(Handed handed) {
  entries_.push_back({.handed = std::move(handed), .returned = {}});
  ++open_;
}

bool Window::Any(const std::function<bool(const JobView& job)>& holds) const {
  return std::ranges::any_of(entries_, [&](const Entry& entry) { return !entry.given && holds(entry.handed.job()); });
}

void Window::Give(Entry& entry, const Take& take) {
  if (std::exchange(entry.given, true)) return;
  --open_;
  take(std::move(entry.handed), std::move(entry.returned));
}

bool Window::Confirm(uint64_t tag, bool multiple, const Take& take) {
  const uint64_t end_tag = first_tag_ + entries_.size();
  if (tag == 0 && multiple) tag = end_tag - 1;  // AMQP: all that there are
  if (tag >= end_tag) return false;
  if (tag < first_tag_) return true;  // said before
  const size_t last = tag - first_tag_;
  confirmed_ = std::max(confirmed_, entries_[last].handed.published);
  for (size_t i = multiple ? 0 : last; i <= last; ++i) Give(entries_[i], take);
  DropGiven();
  return true;
}

void Window::DropGiven() {
  while (!entries_.empty() && entries_.front().given) {
    entries_.pop_front();
    ++first_tag_;
  }
}

void Window::GiveOvertaken(Millis lead, const Take& take) {
  for (Entry& entry : entries_) {
    if (entry.handed.published + lead > confirmed_) break;
    Give(entry, take);
  }
  DropGiven();
}

bool Window::Return(std::string_view id, const Token& token, std::string reason) {
  const size_t from = std::max(return_from_, first_tag_) - first_tag_;
  for (size_t n = 0; n < entries_.size(); ++n) {
    const size_t i = (from + n) % entries_.size();
    Entry& entry = entries_[i];
    if (entry.given || !entry.returned.empty() || entry.handed.job().token != token) continue;
    if (entry.handed.job().Id() != id) continue;
    entry.returned = std::move(reason);
    return_from_ = first_tag_ + i + 1;
    return true;
  }
  return false;
}

void Window::Clear(const Take& take) {
  std::deque<Entry> entries;
  entries.swap(entries_);
  first_tag_ = return_from_ = 1;
  for (Entry& entry : entries) Give(entry, take);
}

}  // namespace tocsin::rabbitmq
