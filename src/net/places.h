// Places: how many sockets of one kind a node may have open, so that together they stay below the system's limit of
// open files. One for a node; thread-safe.
//
// Nobody takes all of it: an owner (a webhook's sink) may take one more only while it holds fewer than are left. So the
// first owner gets half of the places, n busy owners an n+1st part each, and a newcomer still finds some.
#pragma once

#include <atomic>
#include <cstddef>
#include <utility>

namespace tocsin::net {

class Places {
 public:
  /// One place, until it is destroyed. Moves, never copies.
  class Place {
   public:
    Place() = default;
    Place(Place&& other) noexcept : places_(std::exchange(other.places_, nullptr)) {}
    Place& operator=(Place&& other) noexcept {
      std::swap(places_, other.places_);
      return *this;
    }
    ~Place() {
      if (places_ != nullptr) places_->taken_.fetch_sub(1, std::memory_order_relaxed);
    }
    explicit operator bool() const { return places_ != nullptr; }

   private:
    friend class Places;
    explicit Place(Places* places) : places_(places) {}

    Places* places_ = nullptr;
  };

  explicit Places(size_t max) : max_(max) {}
  Places(const Places&) = delete;
  Places& operator=(const Places&) = delete;

  /// For an owner that holds `held` of them; empty if it may not have another one now.
  Place Take(size_t held) {
    if (taken_.fetch_add(1, std::memory_order_relaxed) + held < max_) return Place(this);
    taken_.fetch_sub(1, std::memory_order_relaxed);
    return {};
  }
  /// Whether so few are left that idle connections are worth less than their places.
  bool scarce() const { return taken_.load(std::memory_order_relaxed) + max_ / 8 >= max_; }
  size_t max() const { return max_; }

 private:
  const size_t max_;
  std::atomic<size_t> taken_ = 0;
};

}  // namespace tocsin::net
