// Entry: one row of tocsin_outbox, and the job or the cancel that it asks for. The table of columns is in
// clients/mysql/schema.cc. One thread at a time; the views of `job` and `ref` point into the entry, so it stays where
// it is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "core/requests.h"
#include "model/job.h"

namespace tocsin::outbox {

/// Which row: a server that was restored, or a table that was emptied, may give an id again.
struct RowKey {
  int64_t id = 0;
  Time created{};  // by the clock of MySQL
};

/// As it was read.
struct Row {
  RowKey key() const { return {.id = id, .created = created}; }

  int64_t id = 0;
  std::string op;
  std::string topic;
  std::string job_id;  // empty: NULL, also for the next two
  std::string job_key;
  std::string payload;
  size_t payload_bytes = 0;  // of the column; the payload itself is not read if it is too large
  std::optional<std::string> headers;
  std::optional<int64_t> delay_ms;
  std::optional<int64_t> due_ms;
  std::optional<int64_t> event_count;
  Time created{};  // by the clock of MySQL
};

/// What a row may ask for, and how it is read.
struct Rules {
  Limits limits;
  std::string prefix;         // topics begin with it; empty: any
  std::string identity;       // of the table (clients/mysql/schema.h)
  bool from_pick_up = false;  // delays count from now, and not from the INSERT: the node's clock is a virtual one
};

struct Entry {
  Entry() = default;
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

  Row row;
  bool cancel = false;
  std::string id;  // the job's own id
  std::vector<std::pair<std::string, std::string>> headers;
  NewJob job;  // unless it is a cancel
  JobRef ref;  // of a cancel
};

/// Reads `entry.row`; `ahead`: by how much the node's clock is ahead of that of MySQL. An error says what is wrong with
/// the row, and which column it is.
Status Decode(Entry& entry, const Rules& rules, Millis ahead);

}  // namespace tocsin::outbox
