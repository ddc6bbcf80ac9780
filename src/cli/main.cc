// tocsin: the command line tool.
#include <cstdlib>
#include <exception>

#include <fcntl.h>

#include "base/version.h"
#include "cli/arguments.h"
#include "cli/docs/docs.h"

namespace tocsin::cli {
namespace {

std::optional<std::string> Variable(std::string_view name) {
  const char* const value = std::getenv(std::string(name).c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

/// One line of printable characters: nothing else can be sent in a header.
Result<std::string> ReadAccessToken(const Arguments& arguments) {
  std::string token;
  if (const auto path = arguments.Text("token-file")) {
    auto text = ReadAll(*path);
    if (!text) return std::unexpected(std::move(text).error().Prefixed("--token-file"));
    token = *std::move(text);
    while (token.ends_with('\n') || token.ends_with('\r')) token.pop_back();
    if (token.empty()) return Fail(Code::kInvalidArgument, "--token-file: {} is empty", *path);
  } else {
    token = Variable("TOCSIN_TOKEN").value_or("");
  }
  if (std::ranges::all_of(token, [](char c) { return c > ' ' && c < 0x7F; })) return token;
  return Fail(Code::kInvalidArgument, "the access token is not one line of printable characters");
}

int Complain(const Error& error) {
  PrintStderr("tocsin: {}\n", error.message);
  return ExitStatusOf(error.code);
}

Result<int> RunCommand(const Command& command, const Arguments& arguments, const Clock& clock, Output& out) {
  Result<Endpoint> endpoint;
  std::string access_token;
  if (!command.offline) {
    const TlsFlags tls{.ca = arguments.Text("ca").value_or(""),
                       .cert = arguments.Text("cert").value_or(""),
                       .key = arguments.Text("cert-key").value_or(""),
                       .insecure = arguments.Has("insecure")};
    endpoint = ParseEndpoint(arguments.Text("server").value_or(""), tls);
    if (!endpoint) return std::unexpected(std::move(endpoint).error());
    if (tls.insecure) PrintStderr("tocsin: warning: --insecure: anybody may be the server that answers\n");
    TOCSIN_ASSIGN(access_token, ReadAccessToken(arguments));
  }
  Api api(*std::move(endpoint), access_token, *arguments.Duration("timeout"));
  Context context{clock, out, api};
  auto status = command.run(context, arguments);
  // The server's message says how to send an access token over HTTP, which does not help a user of this command.
  if (!status && status.error().code == Code::kUnauthenticated && access_token.empty() && !arguments.Has("cert")) {
    return Fail(Code::kUnauthenticated,
                "unauthenticated: this server needs an access token: export TOCSIN_TOKEN=..., or name its file with "
                "--token-file (tocsin token create makes one)");
  }
  return status;
}

Result<int> Run(const Parsed& parsed, const Clock& clock, Output& out) {
  if (parsed.action == JobAction::kRun) return RunCommand(*parsed.command, parsed.arguments, clock, out);
  out.Write(parsed.action == JobAction::kVersion ? fmt::format("tocsin {}\n", Version())
            : parsed.command != nullptr          ? CommandHelp(*parsed.command)
            : parsed.family.empty()              ? HelpText(Groups(), GlobalFlags())
                                                 : FamilyHelp(Groups(), parsed.family));
  return kExitOk;
}

/// Opens those that are closed, in a mode in which their usual use fails. Otherwise a connection could get the number
/// of stderr, and receive our messages.
void FillStandardFiles() {
  for (const int fd : {0, 1, 2}) {
    if (::fcntl(fd, F_GETFD) < 0) ::open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
  }
}

int Main(const std::vector<std::string>& words) {
  FillStandardFiles();
  if (words.empty()) {
    PrintStderr("{}", HelpText(Groups(), GlobalFlags()));
    return kExitUsage;
  }
  const RealClock clock;
  const Grammar grammar{Groups(), GlobalFlags(), Variable, clock.Now().utc};
  const auto parsed = Parse(grammar, words);
  if (!parsed) return Complain(parsed.error());
  Output out(stdout, OptionsOfStdout(parsed->arguments.Has("json")));
  const auto status = Run(*parsed, clock, out);
  const Status written = out.Flush();  // a full disk behind the output must not look like success
  if (!status) return Complain(status.error());
  if (!written) return Complain(written.error());
  return *status;
}

}  // namespace
}  // namespace tocsin::cli

int main(int argc, char** argv) {
  try {
    return tocsin::cli::Main({argv + 1, argv + argc});
  } catch (const std::exception& problem) {  // such as no memory: an error like others, not a crash
    for (const char* const text : {"tocsin: ", problem.what(), "\n"}) tocsin::cli::WriteStderr(text);
    return tocsin::cli::kExitCannotRun;
  }
}
