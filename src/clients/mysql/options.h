// Options: how a program reaches a MySQL server or MariaDB. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"

namespace tocsin::mysql {

struct Options {
  std::string host = "127.0.0.1";
  uint16_t port = 3306;
  std::string database;
  std::string username = "root";
  std::string password;
  bool tls = false;       // and the server's certificate has to be that of `host`
  std::string ca_file;    // with TLS: who may have signed it; empty: the system's
  std::string cert_file;  // of a client certificate, with key_file; empty: none
  std::string key_file;
  Millis timeout{5'000};  // of connecting, and of each read and write; the library takes whole seconds

  /// "MySQL at host:port, database name", for messages.
  std::string Where() const;
  /// What ParseUrl reads.
  std::string Url() const;
};

/// mysql[s]://user@host:port/database; user and port may be missing. An error begins with `name`, and holds no part of
/// the text, which may contain a password.
Result<Options> ParseUrl(std::string_view name, std::string_view url);

}  // namespace tocsin::mysql
