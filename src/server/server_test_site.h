// What the tests of the server share: a folder and a configuration of their own, and a whole node on free ports.
#pragma once

#include <csignal>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/ip/tcp.hpp>
#include <gtest/gtest.h>
#include <unistd.h>

#include "auth/test_folder.h"
#include "config/load.h"
#include "server/node.h"

namespace tocsin {

class ServerTest : public testing::Test {
 protected:
  /// Arguments for a server that takes free ports and keeps its jobs in this test's folder.
  Inputs InputsWith(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"--http-listen=127.0.0.1:0", "--resp-listen=127.0.0.1:0", "--log-level=off"});
    if (std::ranges::find(arguments, "--store=redis") == arguments.end()) {
      arguments.insert(arguments.begin(), {"--data-dir=" + folder_.At("data"), "--journal-segment-size=8MiB"});
    }
    return {.arguments = std::move(arguments),
            .environment = {},
            .read_file = [](const std::string&) -> Result<std::string> { return ""; },
            .machine = {.cores = 4, .memory_bytes = 1ULL << 30}};
  }
  Config ConfigWith(std::vector<std::string> arguments) const {
    auto loaded = LoadConfig(InputsWith(std::move(arguments)));
    EXPECT_TRUE(loaded) << loaded.error().message;
    return loaded ? loaded->config : Config{};
  }

  const auth::TestFolder folder_;
};

/// A node that serves on a thread of its own. Its end stops it, as a signal would.
class RunningNode {
 public:
  explicit RunningNode(const Config& config) {
    auto node = ServerNode::Open(config);
    EXPECT_TRUE(node) << node.error().message;
    if (!node) return;
    banner_ = (*node)->Banner();
    thread_ = std::thread([this, node = *std::move(node)] { status_ = node->Run(); });
  }
  ~RunningNode() { Stop(); }

  /// The exit status.
  int Stop() {
    if (thread_.joinable()) {
      ::kill(::getpid(), SIGTERM);
      thread_.join();
    }
    return status_;
  }

  const std::string& banner() const { return banner_; }
  /// Of HTTP.
  std::string address() const {
    const size_t begin = banner_.find("127.0.0.1:");
    return banner_.substr(begin, banner_.find_first_not_of("0123456789.:", begin) - begin);
  }
  /// The whole answer to a request; GET without a body.
  std::string Ask(const std::string& path, const std::string& body = "", const std::string& headers = "") const {
    boost::asio::ip::tcp::iostream stream("127.0.0.1", address().substr(address().find(':') + 1));
    stream << fmt::format("{} {} HTTP/1.1\r\nhost: t\r\nconnection: close\r\ncontent-length: {}\r\n{}\r\n{}",
                          body.empty() ? "GET" : "POST", path, body.size(), headers, body)
           << std::flush;
    return {std::istreambuf_iterator<char>(stream), {}};
  }

 private:
  std::string banner_;
  std::thread thread_;
  int status_ = -1;
};

}  // namespace tocsin
