// DemoServer: runs the tocsind beside this program, with a virtual clock, free ports and a folder of its own. Its
// destructor ends the server and removes the folder. One thread.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/process/process.h"
#include "cli/transport/api.h"

namespace tocsin::cli {

class DemoServer {
 public:
  /// Makes the folder; nothing runs yet.
  static Result<std::unique_ptr<DemoServer>> Make();
  ~DemoServer();
  DemoServer(const DemoServer&) = delete;
  DemoServer& operator=(const DemoServer&) = delete;

  /// Starts it, and waits until it serves.
  Status Start();
  /// kill -9
  void Kill();
  /// Ends it with SIGTERM; its exit status.
  int Stop();

  Api& api() { return *api_; }
  const std::string& folder() const { return folder_; }
  /// The start-up message's words about the data.
  const std::string& recovery() const { return recovery_; }

 private:
  DemoServer(std::string program, std::string folder) : program_(std::move(program)), folder_(std::move(folder)) {}
  Result<std::string> ReadBanner();

  const std::string program_;
  const std::string folder_;
  std::optional<Process> process_;
  std::string recovery_;
  std::unique_ptr<Api> api_;
};

}  // namespace tocsin::cli
