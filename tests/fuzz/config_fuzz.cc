// Any file, flag or variable either gives a Config within its bounds, which survives being printed and read again, or
// an error with a message; never an exception, a crash or a hang.
//
// Input: the flags, one a line; an empty line; the TOML file.
#include <sstream>
#include <string>

#include "base/result.h"
#include "config/load.h"
#include "config/options.h"

using tocsin::Inputs;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const size_t split = std::min(text.find("\n\n"), text.size());
  std::string file = text.substr(std::min(split + 2, text.size()));
  Inputs inputs{.arguments = {"--config", "f", "--config-check"},
                .read_file = [&](const std::string&) { return file; }};
  std::istringstream flags(text.substr(0, split));
  for (std::string flag; std::getline(flags, flag);) inputs.arguments.push_back(flag);

  const auto loaded = tocsin::LoadConfig(inputs);
  if (!loaded) {
    TOCSIN_CHECK(!loaded.error().message.empty());
    return 0;
  }
  TOCSIN_CHECK(loaded->action == tocsin::Action::kPrint);
  if (loaded->config.shards == 0) return 0;  // --help and the like load nothing
  // A path may be any bytes, but TOML is UTF-8.
  const std::string paths = loaded->config.data_dir + loaded->config.auth_token_file;
  if (std::ranges::any_of(paths, [](char c) { return static_cast<unsigned char>(c) >= 0x80; })) return 0;
  TOCSIN_CHECK(loaded->config.shards >= 1 && loaded->config.shards <= 64);
  file = loaded->text;
  inputs.arguments = {"--config", "f"};
  const auto again = tocsin::LoadConfig(inputs);
  TOCSIN_CHECK(again.has_value());
  TOCSIN_CHECK(again->config.http_listen == loaded->config.http_listen);
  TOCSIN_CHECK(again->config.journal_segment_size == loaded->config.journal_segment_size);
  return 0;
}
