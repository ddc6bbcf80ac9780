// ProbeServer: the least that could be called a durable delay queue, as a ceiling for real ones. It appends every
// submit and every acknowledgement with a CRC, answers them after the group fdatasync, and gives payloads back from
// memory when they are due. It has no ids, topics, leases, retries, limits, errors or recovery. A thread of its own,
// and the log's.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "load/group_log.h"
#include "load/probe_wire.h"
#include "shared/net.h"

namespace tocsin::bench {

class ProbeServer {
 public:
  ProbeServer(const std::string& folder, size_t payload);
  ~ProbeServer();
  ProbeServer(const ProbeServer&) = delete;
  ProbeServer& operator=(const ProbeServer&) = delete;

  const Endpoint& endpoint() const { return endpoint_; }

 private:
  class Session;
  class Listener;
  class Wake;

  void Serve();
  void Accept();
  void Synced();
  /// Each returns false if the log is full: the frame is tried again after a sync.
  bool Submit(const probe::Head& head, std::string_view payloads);
  bool Ack(const probe::Head& head, std::string_view tokens);
  /// Answers with what is due; false if nothing is.
  bool Deliver(Session& session, uint32_t most);
  void DeliverToWaiting();
  uint32_t Keep(std::string_view payload);

  const size_t payload_;
  Endpoint endpoint_;
  const int listener_fd_;
  const int wake_fd_;
  GroupLog log_;
  Poller poller_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Wake> wake_;
  std::vector<std::unique_ptr<Session>> sessions_;

  // Payloads in places of one size; free places are used again.
  std::vector<std::unique_ptr<char[]>> chunks_;
  std::vector<uint32_t> free_;
  uint32_t places_ = 0;
  std::map<int64_t, std::vector<uint32_t>> due_;  // due ms -> places

  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace tocsin::bench
