// Handlers that serve a verb on every door: they take decoded arguments, call the use case and write the answer through
// a Reply. Each door has its own handlers for verbs that it gathers into batches (submit, reserve, settle, amend,
// count).
//
// A handler runs on the caller's loop and answers there, at once or later.
#pragma once

#include <memory>
#include <string>

#include "api/verbs.h"
#include "core/cluster.h"
#include "core/service.h"
#include "frontend/shared/value_writer.h"
#include "net/connection.h"

namespace tocsin::shared {

/// The promise to answer one call, once.
class Reply {
 public:
  virtual ~Reply() = default;

  virtual std::shared_ptr<net::Connection> connection() const = 0;
  /// kOverloaded if no memory is left for an answer of this size.
  virtual Status MakeRoom(size_t bytes) = 0;
  /// The same for an answer that cannot be had in parts (net::Charge::ReachWhole).
  virtual Status MakeRoomForWhole(size_t bytes) = 0;
  /// For the jobs that the call reads, and the answer that is made of them; MakeRoom takes it over. As long as the
  /// reply is there.
  virtual JobRoom& room() = 0;
  virtual void Fail(const Error& error) = 0;
  /// What the call asked for does not exist: an error, or nothing on a wire that has a word for it.
  virtual void Missing(const Error& error) = 0;
  /// `outcome` says that it is done.
  virtual void Done(std::string_view outcome) = 0;
  /// One of several outcomes: every wire names it.
  virtual void Became(std::string_view outcome) = 0;

  /// Where the answer is written, between Begin and Send.
  virtual ValueWriter& Begin() = 0;
  /// The same for an answer of one value: wires that need one put an object with this member around it.
  virtual ValueWriter& BeginSingle(std::string_view name) = 0;
  /// The same for a page of so many items, which are called `name`; `cursor` is empty at the end.
  virtual ValueWriter& BeginPage(std::string_view name, std::string_view cursor, size_t items) = 0;
  /// For the audit, before the answer: so many jobs.
  virtual void Note(std::string_view /*name*/, int64_t /*number*/) {}
  /// `created`: the call made something new.
  virtual void Send(bool created = false) = 0;
};

struct Call {
  Service& service;
  Loop& loop;
  const Clock& clock;
  VirtualClock* virtual_clock;  // null with the real clock
  const NodeInfo& node;
  std::string prefix;  // of the topics that the caller may see
  bool sees_payloads = true;
  bool sees_whole_urls = true;  // for administrators: a path or a query is often a secret of the receiver
  std::string topic;
  api::Arguments arguments;
  TopicChange change;  // of a verb that takes settings
  Bytes bytes;         // keeps alive what the arguments point into
  std::unique_ptr<Reply> reply;
  Service::OperationEnded audit_end = {};  // writes how the operation that the call began has ended
};

using Handler = void (*)(Call call);

/// Null for a verb that each door handles itself.
Handler HandlerOf(api::VerbId verb);

}  // namespace tocsin::shared
