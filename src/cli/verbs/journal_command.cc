// `tocsin journal verify|repair`: checks, and salvages, a data folder that no server uses. Neither changes the folder.
// An error is always kIo, never an exit status 1: that the folder cannot be read says nothing about its content.
#include "base/file.h"
#include "cli/arguments.h"
#include "cli/text/human.h"
#include "storage/journal/inspect.h"

namespace tocsin::cli {
namespace {

std::string Many(uint64_t number, std::string_view one) { return Counted(static_cast<int64_t>(number), one); }

std::string FolderOf(const Arguments& arguments) {
  std::string folder = *arguments.Text("DIR");
  while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
  return folder;
}

void PrintDamage(Output& out, const std::vector<journal::Damage>& damage) {
  for (const journal::Damage& one : damage) out.Print("  {} at byte {}: {}\n", one.file, one.offset, one.what);
}

/// For --json.
json::array DamageOf(const std::vector<journal::Damage>& damage) {
  json::array list;
  for (const journal::Damage& one : damage) {
    list.push_back({{"file", one.file}, {"offset", one.offset}, {"what", one.what}});
  }
  return list;
}

void PrintLost(Output& out, const journal::Report& report) {
  out.Print("jobs lost: {}, not counting what only missing files or bytes would tell\n", report.jobs_lost);
}

Result<int> RunVerify(Context& context, const Arguments& arguments) {
  Output& out = context.out;
  const std::string folder = FolderOf(arguments);
  const auto report = journal::Verify(*MakePosixFileSystem(), folder);
  if (!report) return Fail(Code::kIo, "{}", report.error().message);
  if (out.json()) {
    out.Json({{"folder", folder},
              {"segments", report->segments},
              {"records", report->records},
              {"bytes", report->bytes},
              {"jobs_live", report->jobs_live},
              {"jobs_dead", report->jobs_dead},
              {"jobs_lost", report->jobs_lost},
              {"torn_tail_bytes", report->torn_tail_bytes},
              {"damage", DamageOf(report->damage)}});
    return report->damage.empty() ? kExitOk : kExitNo;
  }
  out.Print("{}: {}, {}, {}; {} and {}\n", folder, Many(report->segments, "segment"), Many(report->records, "record"),
            Many(report->bytes, "byte"), Many(report->jobs_live, "live job"), Many(report->jobs_dead, "dead job"));
  if (report->torn_tail_bytes > 0) {
    out.Print(
        "{} bytes of an unfinished write at the end: the next start cuts them off; no acknowledged job is in them\n",
        report->torn_tail_bytes);
  }
  if (report->damage.empty()) {
    out.Write("no damage\n");
    return kExitOk;
  }
  out.Print("damage in {} places:\n", report->damage.size());
  PrintDamage(out, report->damage);
  PrintLost(out, *report);
  out.Print("salvage the undamaged part with: tocsin journal repair {}\n", folder);
  return kExitNo;
}

Result<int> RunRepair(Context& context, const Arguments& arguments) {
  Output& out = context.out;
  const std::string folder = FolderOf(arguments);
  const std::string output = arguments.Text("output").value_or(folder + ".repaired");
  const auto report = journal::Repair(*MakePosixFileSystem(), folder, output);
  if (!report) return Fail(Code::kIo, "{}", report.error().message);
  if (out.json()) {
    out.Json({{"folder", folder},
              {"output", output},
              {"jobs_live", report->jobs_live},
              {"jobs_dead", report->jobs_dead},
              {"jobs_lost", report->jobs_lost},
              {"damage", DamageOf(report->damage)}});
    return report->damage.empty() ? kExitOk : kExitNo;
  }
  out.Print("{}: {} and {} written to {}; {} is unchanged\n", folder, Many(report->jobs_live, "live job"),
            Many(report->jobs_dead, "dead job"), output, folder);
  if (report->damage.empty()) {
    out.Write("nothing was left out\n");
  } else {
    out.Write("left out because of damage:\n");
    PrintDamage(out, report->damage);
    PrintLost(out, *report);
  }
  out.Print(
      "to put it in use:\n"
      "  mv {0} {0}.damaged\n"
      "  mv {1} {0}\n"
      "then start the server again\n",
      folder, output);
  return report->damage.empty() ? kExitOk : kExitNo;
}

constexpr Positional kFolder{"DIR", "Data folder. No server may be using it."};

}  // namespace

Command JournalVerify() {
  return {
      .name = "journal verify",
      .summary = "looks for damage in a data folder",
      .details = "Reads every record and changes nothing.",
      .positionals = {kFolder},
      .examples = {{"journal verify ./tocsin-data", "what is stored there, and whether all of it can be read"}},
      .no = "damage was found",
      .offline = true,
      .run = RunVerify,
  };
}

Command JournalRepair() {
  return {
      .name = "journal repair",
      .summary = "writes the undamaged part of a data folder to a new one",
      .details = "The folder itself is not changed. The output says how to put the new one in its place.",
      .positionals = {kFolder},
      .flags = {{.name = "output",
                 .doc = "Folder to write to; it must not exist. Default: DIR.repaired.",
                 .value = "NEW_DIR"}},
      .examples = {{"journal repair ./tocsin-data", "the undamaged part, in ./tocsin-data.repaired"}},
      .no = "damage was found and left out",
      .offline = true,
      .run = RunRepair,
  };
}

}  // namespace tocsin::cli
