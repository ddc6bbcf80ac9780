#include "api/syntax.h"
#include "base/nearest.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "cli/docs/docs.h"

namespace tocsin::cli {
namespace {

Result<int> Run(Context& context, const Arguments& arguments) {
  const std::string name = *arguments.Text("PAGE");
  std::vector<std::string_view> names;
  for (const Page& page : Pages()) {
    names.push_back(page.name);
    if (page.name != name) continue;
    context.out.Write(page.text(Groups(), GlobalFlags()));
    return kExitOk;
  }
  if (const auto table = api::DocTable(name)) {
    context.out.Write(*table);
    return kExitOk;
  }
  return Fail(Code::kInvalidArgument, "PAGE: \"{}\" is not {}{}", name, fmt::join(names, ", "),
              DidYouMean(name, names));
}

}  // namespace

Command Docs() {
  return {
      .name = "docs",
      .summary = "prints a page about these commands, or a completion for a shell",
      .positionals = {{.name = "PAGE",
                       .doc = "cli (Markdown), man (a man page), bash or zsh (completions).",
                       .words = "cli man bash zsh"}},
      .examples = {{"docs bash > ~/.local/share/bash-completion/completions/tocsin",
                    "Tab completes commands and flags in the next shell"}},
      .offline = true,
      .run = Run,
  };
}

}  // namespace tocsin::cli
