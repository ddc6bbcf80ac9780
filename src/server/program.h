// The server program: from its arguments to its exit status, and what it does around its node. main.cc only calls it;
// tests call it too.
#pragma once

#include <cstdio>
#include <string>

#include "config/config.h"
#include "config/load.h"

namespace tocsin {

constexpr int kExitOk = 0;
constexpr int kExitCannotStart = 1;  // the address or the data folder is in use, or the stored data is damaged
constexpr int kExitBadConfig = 2;
constexpr int kExitStoreFailed = 70;  // a write or a sync failed: start it again, and it recovers

struct BannerFacts {
  std::string version;  // a line
  std::string store;    // a line: where jobs are, and what was there already
  std::string url;      // without a slash at the end
  std::string resp;     // host:port
  bool resp_tls = false;
  bool dashboard = false;
  bool virtual_clock = false;
  bool tokens = false;  // every call needs an access token
};

/// What the server prints on a terminal when it is ready: where it listens, what it recovered, and a first job to
/// paste.
std::string BannerText(const BannerFacts& facts);

/// How many sockets of each kind fit below the system's limit of open files.
struct SocketPlan {
  size_t connections = 0;  // of clients
  size_t webhooks = 0;     // to receivers
};

/// The files that a server may open beside these sockets: for the journal, the loops, refusals, and other servers.
size_t OwnFiles(const Config& config);
/// Raises the limit of open files as far as the system allows. Client connections get what is `wanted`, less if they do
/// not fit beside `own_files` and a quarter for webhooks; webhooks get the rest. The journal must always be able to
/// open a file, so these limits hold.
SocketPlan PlanSockets(size_t wanted, size_t own_files);

/// Serves until a signal, or prints what was asked for. Returns the exit status.
int RunProgram(const Inputs& inputs, std::FILE* out, std::FILE* err);

}  // namespace tocsin
