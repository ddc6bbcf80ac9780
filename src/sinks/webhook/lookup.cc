#include "sinks/webhook/lookup.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include <boost/asio/ip/tcp.hpp>
#include <netdb.h>
#include <pthread.h>

namespace tocsin::webhook {

NameLookup::~NameLookup() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void NameLookup::Ask(const std::string& name, Loop& loop, Done done) {
  constexpr size_t kThreadsMax = 16;
  const std::lock_guard lock(mutex_);
  auto [at, fresh] = askers_.try_emplace(name);
  at->second.push_back({&loop, std::move(done)});
  if (!fresh) return;
  waiting_.push_back(name);
  if (idle_ < waiting_.size() && threads_.size() < kThreadsMax) threads_.emplace_back([this] { Work(); });
  wake_.notify_one();
}

void NameLookup::Work() {
  pthread_setname_np(pthread_self(), "webhook-names");
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    wake_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    --idle_;
    if (stopping_) return;
    const std::string name = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    const auto found = std::make_shared<const Result<Addresses>>(find_(name));
    lock.lock();
    if (stopping_) return;
    auto node = askers_.extract(name);
    for (Asker& asker : node.mapped()) {
      asker.loop->Post([found, done = std::move(asker.done)]() mutable { done(*found); });
    }
  }
}

Result<Addresses> NameLookup::FindBySystem(const std::string& name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(name.c_str(), nullptr, &hints, &list);
  if (error != 0) {
    return Fail(Code::kUnavailable, "the name {} cannot be looked up: {}", name, gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, &freeaddrinfo);
  Addresses addresses;
  for (const addrinfo* info = list; info != nullptr; info = info->ai_next) {
    boost::asio::ip::tcp::endpoint endpoint;  // its memory is a sockaddr of either family
    std::memcpy(endpoint.data(), info->ai_addr, std::min<size_t>(info->ai_addrlen, endpoint.capacity()));
    addresses.push_back(endpoint.address());
  }
  return addresses;
}

}  // namespace tocsin::webhook
