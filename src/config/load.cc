#include "config/load.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>

#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/text.h"
#include "config/docs.h"
#include "config/options.h"

namespace tocsin {
namespace {

constexpr std::string_view kVariablePrefix = "TOCSIN_";
constexpr size_t kFileBytesMax = 64 << 10;
constexpr uint64_t kSegmentBytes = 64 << 20;
constexpr uint64_t kSmallSegmentBytes = 4 << 20;  // with a virtual clock: the data folders of tests stay small

/// The command line, in its order.
struct CommandLine {
  std::vector<Setting> settings;
  std::optional<std::string> config_file;
  std::optional<std::string> print_docs;
  bool config_check = false;
  bool begin_anew = false;
  bool help = false;
  bool version = false;
};

struct Environment {
  std::vector<Setting> settings;
  std::optional<std::string> config_file;
};

std::unexpected<Error> UnknownFlag(const std::string& flag) {
  std::vector<std::string> flags;
  for (const Option& option : Options()) flags.push_back(FlagOf(option.key));
  for (const Command& command : Commands()) flags.emplace_back(command.flag);
  return FailField(Code::kUnknownField, flag, "unknown argument \"{}\"{} (tocsind --help lists them all)", flag,
                   DidYouMean(flag, flags));
}

Result<CommandLine> ParseArguments(const std::vector<std::string>& arguments) {
  CommandLine line;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const size_t equals = arguments[i].find('=');
    const std::string flag = arguments[i].substr(0, equals);
    if (equals == std::string::npos) {
      bool* const set = flag == "--help" || flag == "-h" ? &line.help
                        : flag == "--version"            ? &line.version
                        : flag == "--config-check"       ? &line.config_check
                        : flag == "--new"                ? &line.begin_anew
                                                         : nullptr;
      if (set != nullptr) {
        *set = true;
        continue;
      }
    }
    const auto known = std::ranges::find(Options(), flag, [](const Option& each) { return FlagOf(each.key); });
    const Option* const option = known == Options().end() ? nullptr : &*known;
    if (option == nullptr && flag != "--config" && flag != "--print-docs") return UnknownFlag(flag);
    std::string value;
    if (equals != std::string::npos) {
      value = arguments[i].substr(equals + 1);
    } else if (i + 1 < arguments.size()) {
      value = arguments[++i];
    } else {
      return FailField(Code::kInvalidArgument, flag, "{} needs a value", flag);
    }
    if (option != nullptr) {
      line.settings.push_back({option, std::move(value), flag});
    } else {
      (flag == "--config" ? line.config_file : line.print_docs) = std::move(value);
    }
  }
  return line;
}

/// Variables with our prefix that are not options: Kubernetes gives every container in the namespace
/// TOCSIN_SERVICE_HOST, TOCSIN_PORT, TOCSIN_PORT_7420_TCP... if a service is called tocsin; the tocsin command has its
/// own; and secrets are read when a topic names them.
bool IsForeign(std::string_view variable) {
  return variable.starts_with("TOCSIN_SERVICE_") || variable == "TOCSIN_PORT" || variable.starts_with("TOCSIN_PORT_") ||
         variable == "TOCSIN_SERVER" || variable == "TOCSIN_TOKEN" || variable == "TOCSIN_TOKEN_FILE" ||
         variable.starts_with("TOCSIN_SECRET_");
}

Result<Environment> ParseEnvironment(const std::vector<std::pair<std::string, std::string>>& variables) {
  Environment environment;
  std::vector<std::string> known{VariableOf("config")};
  for (const Option& option : Options()) known.push_back(VariableOf(option.key));
  for (const auto& [name, value] : variables) {
    if (!name.starts_with(kVariablePrefix) || IsForeign(name)) continue;
    const auto found = std::ranges::find(known, name);
    if (found == known.end()) {
      return FailField(Code::kUnknownField, name, "unknown environment variable \"{}\"{}", name,
                       DidYouMean(name, known));
    }
    if (found == known.begin()) {
      environment.config_file = value;
    } else {
      environment.settings.push_back({&Options()[static_cast<size_t>(found - known.begin()) - 1], value, name});
    }
  }
  return environment;
}

/// A config before all settings are applied, with the origin of each value.
struct Draft {
  Config config;
  std::vector<std::string> origins = std::vector<std::string>(Options().size(), "default");

  Status Apply(const std::vector<Setting>& settings) {
    for (const Setting& setting : settings) {
      Status set = SetOption(*setting.option, setting.value, config);
      if (!set) {
        return FailField(set.error().code, std::string(setting.option->key), "{}: {} = \"{}\" {}", setting.origin,
                         setting.option->key, setting.value, set.error().message);
      }
      origins[static_cast<size_t>(setting.option - Options().data())] = setting.origin;
    }
    return {};
  }

  /// Replaces 0 and empty by what they stand for.
  void Resolve(const Machine& machine) {
    if (config.shards == 0) {
      config.shards = std::clamp(machine.cores / 2, 1, 64);
      if (config.store == StoreKind::kRedis)
        config.shards = static_cast<int>(std::bit_floor(static_cast<unsigned>(config.shards)));
    }
    if (config.node_name.empty()) config.node_name = machine.host.substr(0, 64);
    if (config.memory_limit == 0) config.memory_limit = (machine.memory_bytes / 10 * 7) >> 20 << 20;  // whole MiB
    if (config.journal_segment_size == 0 && config.store == StoreKind::kJournal) {
      config.journal_segment_size = config.clock == ClockKind::kReal
                                        ? kSegmentBytes
                                        : std::max(kSmallSegmentBytes, 5 * config.limits_payload_size);
    }
  }

  /// TOML, so that it can be saved and loaded, except for what is secret.
  std::string Effective() const {
    std::string text = "# The configuration is valid. These values are in effect, each with where it comes from.\n";
    for (size_t i = 0; i < origins.size(); ++i) {
      const Option& option = Options()[i];
      const std::string value = ShowOption(option, config);
      const bool hidden = option.secret && !value.empty();
      const std::string line =
          hidden ? fmt::format("# {} is set, and not shown", option.key) : TomlLine(option, option.key, value);
      text += fmt::format("{:<40}  # {}\n", line, origins[i]);
    }
    return text;
  }
};

Result<std::string> Docs(const std::string& which) {
  if (which == "configuration") return ConfigurationMarkdown();
  if (which == "errors") return ErrorsMarkdown();
  if (which == "sample") return SampleToml();
  if (which == "man") return ManPage();
  return FailField(Code::kInvalidArgument, "--print-docs",
                   "--print-docs: \"{}\" is not configuration, errors, sample or man", which);
}

Result<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  if (file.is_open() && file.peek() != std::ifstream::traits_type::eof()) bytes << file.rdbuf();
  if (!file.is_open() || file.bad()) return Fail(Code::kIo, "cannot read {}: {}", path, std::strerror(errno));
  return std::move(bytes).str();
}

/// The memory limit of our control group. A container sees it as /sys/fs/cgroup; "max", or no file, means there is
/// none.
uint64_t GroupLimit() {
  std::ifstream file("/sys/fs/cgroup/memory.max");
  uint64_t limit = 0;
  return file >> limit && limit > 0 ? limit : UINT64_MAX;
}

Machine ThisMachine() {
  Machine machine;
  machine.cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  struct sysinfo info{};
  if (sysinfo(&info) == 0) machine.memory_bytes = std::min(uint64_t{info.totalram} * info.mem_unit, GroupLimit());
  char host[256] = "";
  if (gethostname(host, sizeof host - 1) == 0 && host[0] != '\0') machine.host = host;
  return machine;
}

}  // namespace

Inputs ProcessInputs(int argc, const char* const* argv, const char* const* environment) {
  Inputs inputs{.read_file = ReadFile, .machine = ThisMachine()};
  for (int i = 1; i < argc; ++i) inputs.arguments.emplace_back(argv[i]);
  for (const char* const* entry = environment; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    inputs.environment.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return inputs;
}

Result<Loaded> LoadConfig(const Inputs& inputs) {
  TOCSIN_ASSIGN(const CommandLine line, ParseArguments(inputs.arguments));
  if (line.help) return Loaded{.action = Action::kPrint, .text = HelpText()};
  if (line.version) return Loaded{.action = Action::kPrint, .text = VersionText()};
  if (line.print_docs) {
    TOCSIN_ASSIGN(std::string text, Docs(*line.print_docs));
    return Loaded{.action = Action::kPrint, .text = std::move(text)};
  }
  TOCSIN_ASSIGN(const Environment environment, ParseEnvironment(inputs.environment));

  Draft draft;
  for (const Option& option : Options()) TOCSIN_TRY(SetOption(option, option.fallback, draft.config));
  if (const auto& path = line.config_file ? line.config_file : environment.config_file) {
    TOCSIN_ASSIGN(const std::string text, inputs.read_file(*path));
    if (text.size() > kFileBytesMax) return Fail(Code::kTooLarge, "{} is over {} bytes", *path, kFileBytesMax);
    TOCSIN_ASSIGN(const std::vector<Setting> settings, ParseToml(text, *path));
    TOCSIN_TRY(draft.Apply(settings));
  }
  TOCSIN_TRY(draft.Apply(environment.settings));
  TOCSIN_TRY(draft.Apply(line.settings));
  draft.config.begin_anew = line.begin_anew;
  draft.Resolve(inputs.machine);
  TOCSIN_TRY(CheckTogether(draft.config));
  if (line.config_check) return Loaded{.action = Action::kPrint, .config = draft.config, .text = draft.Effective()};
  return Loaded{.config = std::move(draft.config)};
}

}  // namespace tocsin
