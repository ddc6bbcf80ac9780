// Holders: the names of those who hold leases. All leases of one holder share its name, by a number; the name is
// forgotten with the last of them. The shard's thread owns it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"

namespace tocsin::journal {

class Holders {
 public:
  static constexpr uint16_t kNone = 0;  // the number of a holder without a name, and of one too many

  /// Counts so many leases for the name and returns its number. kNone if it is not known and `may_add` is false.
  uint16_t Hold(std::string_view name, uint32_t leases, bool may_add) {
    if (name.empty() || leases == 0) return kNone;
    auto known = numbers_.find(name);
    if (known == numbers_.end()) {
      if (!may_add || (free_.empty() && holders_.size() > UINT16_MAX)) return kNone;
      known = numbers_.emplace(name, TakeNumber()).first;
      holders_[known->second].name = &known->first;
      bytes_ += BytesOf(known->first);
    }
    holders_[known->second].leases += leases;
    return known->second;
  }

  /// One of its leases is over.
  void Release(uint16_t number) {
    if (number == kNone || --holders_[number].leases > 0) return;
    const auto known = numbers_.find(*holders_[number].name);
    bytes_ -= BytesOf(known->first);
    numbers_.erase(known);
    free_.push_back(number);
  }

  std::string_view NameOf(uint16_t number) const {
    return number == kNone ? std::string_view() : std::string_view(*holders_[number].name);
  }
  size_t size() const { return numbers_.size(); }
  size_t held_bytes() const { return bytes_; }

 private:
  struct Holder {
    const std::string* name = nullptr;  // in numbers_
    uint32_t leases = 0;
  };

  uint16_t TakeNumber() {
    if (free_.empty()) {
      holders_.push_back({});
      return static_cast<uint16_t>(holders_.size() - 1);
    }
    const uint16_t number = free_.back();
    free_.pop_back();
    return number;
  }
  /// Of a name, with what the tables add to it.
  static size_t BytesOf(const std::string& name) { return name.capacity() + 96; }

  TextMap<uint16_t> numbers_;
  std::vector<Holder> holders_ = {{}};  // by number; [0] is kNone
  std::vector<uint16_t> free_;
  size_t bytes_ = 0;
};

}  // namespace tocsin::journal
