// Texts that are generated from the option table and the error table. tools/generate_docs.sh writes them to
// docs/configuration.md, docs/errors.md, deploy/tocsin.toml and deploy/tocsind.8; docs_test.cc fails when a file
// differs.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tocsin {

/// Arguments for the program itself: they are not options of the server, and not in the file.
struct Command {
  std::string_view flag;
  std::string_view value;  // the name of its value, or empty
  std::string_view doc;
};
std::span<const Command> Commands();

std::string HelpText();
std::string VersionText();
std::string ConfigurationMarkdown();
std::string ErrorsMarkdown();
std::string SampleToml();
/// tocsind(8).
std::string ManPage();

}  // namespace tocsin
