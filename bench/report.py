"""What people read of a results file: tables for the terminal and for docs/performance.md, and its pictures. Only write() has effects."""

import pathlib
import re
import textwrap

import figures
import machine
import subjects
import svg

BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"
LIMIT_LABEL = "limit probe"


def title(results, name):
    return figures.dig(results, "subjects", name, "title") or name


def _ratio(value):
    if value is None:
        return ""
    return f"{value:.2f} x" if value < 10 else f"{value:.0f} x"


def table_cells(results, metric):
    """The rows of a metric as text: name, durability, median, spread, n, x best peer, x Redis always, of the limit."""
    table = figures.rows(results, metric)
    best = figures.best_peer(table)
    always = figures.median_of(table, figures.REFERENCE)
    limit = metric.limit(figures.median_limits(results))
    lines = []
    for row in table:
        durability = figures.dig(results, "subjects", row.subject, "durability") or ""
        if not row.values:
            lines.append([title(results, row.subject), durability, row.note, "", "", "", "", ""])
            continue
        spread = f"{figures.number(row.low)} to {figures.number(row.high)}" if len(row.values) > 1 else "one run"
        marks = ("" if row.held else ", rate not held") + (f", {row.early:,} early" if row.early else "")
        compared = [figures.ratio(row.median, reference, metric.higher) if row.held else None
                    for reference in (best.median if best else None, always)]
        share = figures.ratio(row.median, limit, metric.higher) if row.held else None
        lines.append([title(results, row.subject), durability, figures.number(row.median) + marks, spread, str(len(row.values)),
                      _ratio(compared[0]), _ratio(compared[1]), "" if share is None else f"{share:.2f}"])
    if limit is not None:
        lines.append([LIMIT_LABEL, "fsync", figures.number(limit), "", "", "", "", "1.00"])
    return lines


LATENESS_HEAD = ["", "durability", "p50", "p99", "p99.9", "largest", "p99, lowest to highest", "runs", "p99 x best peer",
                 "p99 x Redis always", "p99 of the limit"]


def lateness_cells(results, rate):
    """The rows of a steady rate as text: the percentiles side by side, compared by p99."""
    known = {metric.key: metric for metric in figures.metrics(results)}
    shares = [{row.subject: row for row in figures.rows(results, known[f"late-{rate}-{share}"])}
              for share in ("p50", "p99", "p999", "max")]
    lines = []
    for line, row in zip(table_cells(results, known[f"late-{rate}-p99"]), figures.rows(results, known[f"late-{rate}-p99"])):
        if not row.values:
            lines.append([*line[:2], "", line[2], "", "", "", "", "", "", ""])
            continue
        medians = [figures.number(share[row.subject].median) if row.subject in share else "" for share in shares]
        lines.append([line[0] + line[2].removeprefix(figures.number(row.median)), line[1], *medians, *line[3:]])
    limits = figures.median_limits(results)
    probe = [known[f"late-{rate}-{share}"].limit(limits) for share in ("p50", "p99", "p999", "max")]
    if probe[1] is not None:
        lines.append([LIMIT_LABEL, "fsync", *map(figures.number, probe), "", "", "", "", "1.00"])
    return lines


def tables(results):
    """Title, head and rows of every table of figures, in order."""
    found, rates = [], []
    for metric in figures.metrics(results):
        if not metric.key.startswith("late-"):
            found.append((f"{metric.title} ({metric.unit})", HEAD, table_cells(results, metric)))
        elif metric.cell not in rates:
            rates.append(metric.cell)
            rate = metric.cell.removeprefix("steady-")
            found.append((f"Lateness at a steady {rate}/s, due to received (ms)", LATENESS_HEAD, lateness_cells(results, rate)))
    return found


HEAD = ["", "durability", "median", "lowest to highest", "runs", "x best peer", "x Redis always", "of the limit"]


def text_table(head, lines):
    """Columns that line up; a column without any text is left out."""
    keep = [index for index in range(len(head)) if any(line[index] for line in lines)]
    widths = {index: max(len(line[index]) for line in [head] + lines) for index in keep}
    shown = []
    for line in [head] + lines:
        shown.append("  ".join(line[index].ljust(widths[index]) if index < 2 else line[index].rjust(widths[index])
                               for index in keep).rstrip())
    return "\n".join(shown)


def markdown_table(head, lines):
    keep = [index for index in range(len(head)) if any(line[index] for line in lines)]
    out = ["| " + " | ".join(head[index] for index in keep) + " |", "|" + "---|" * len(keep)]
    for line in lines:
        cells = [" ".join(line[index].split()).replace("|", "\\|") for index in keep]
        if line[0].startswith("Tocsin"):
            cells[0] = f"**{cells[0]}**"
        out.append("| " + " | ".join(cells) + " |")
    return "\n".join(out)


def verdict_tables(results):
    """Head and rows of the tables of targets."""
    found = []
    for name, verdicts in (("Tocsin over RESP, fsync", figures.targets(results)), ("Tocsin on Redis", figures.redis_targets(results)),
                           ("Push", figures.push_targets(results))):
        lines = [[verdict.what, verdict.target, verdict.measured or "not measured",
                  {True: "yes", False: "no", None: "-"}[verdict.met]] for verdict in verdicts]
        if lines:
            found.append(([name, "target", "measured", "met"], lines))
    return found


PART_KEYS = {"drain": "cores in drain", "life": "in life", "steady-20k": "at a steady 20k/s"}
PART_HEAD = ["", *PART_KEYS.values(), "idle, with a backlog", "bytes written for a life", "RAM for a pending job"]


def part_lines(results):
    """Who of several programs used what."""
    def shown(value):
        return "" if value is None else figures.number(value)

    return [[f"{title(results, part.subject)}: {part.program}", *(shown(part.cores[key]) for key in PART_KEYS),
             shown(part.idle), shown(part.written), shown(part.memory)] for part in figures.parts(results, PART_KEYS)]


PUSH_HEAD = ["", "jobs/s confirmed", "lowest to highest", "runs", "the receiver's limit", "of the limit",
             "cores, submits and wait included: tocsind", "the receiver"]
PUSH_LATE_HEAD = ["", "p50", "p99", "p99.9", "largest", "p99, lowest to highest", "runs"]


def _spread(row):
    return f"{figures.number(row.low)} to {figures.number(row.high)}" if len(row.values) > 1 else "one run"


def push_lines(results):
    lines = []
    for each in figures.pushes(results):
        if each.drain is None:
            continue
        name = title(results, each.subject)
        if not each.drain.values:
            lines.append([name, each.drain.note, "", "", "", "", "", ""])
            continue
        share = figures.ratio(each.drain.median, each.raw.median if each.raw else None)
        cores = [figures.number(each.cores[program]) if program in each.cores else "" for program in ("tocsind", "the receiver")]
        lines.append([name, figures.number(each.drain.median), _spread(each.drain), str(len(each.drain.values)),
                      figures.number(each.raw.median) if each.raw else "", "" if share is None else f"{share:.2f}", *cores])
    return lines


def push_late_lines(results):
    lines = []
    for each in figures.pushes(results):
        row = each.late["p99"]
        if row is None:
            continue
        name = title(results, each.subject)
        if not row.values:
            lines.append([name, "", row.note, "", "", "", ""])
            continue
        medians = [figures.number(each.late[share].median) for share in ("p50", "p99", "p999", "max")]
        lines.append([name + ("" if row.held else ", rate not held"), *medians, _spread(row), str(len(row.values))])
    return lines


def push_tables(results):
    found = [("Push: all due at once, until the receiver has confirmed all", PUSH_HEAD, push_lines(results)),
             ("Push: due to confirmed at a steady 5k/s, by the server's own histogram (ms)", PUSH_LATE_HEAD, push_late_lines(results))]
    return [table for table in found if table[2]]


LIMITS = [
    ("syncs a second: 4 KiB, O_DIRECT and fdatasync, over written space", ("fdatasync_4k_per_s",)),
    ("syncs a second: 64 KiB, the same", ("fdatasync_64k_per_s",)),
    ("syncs a second: 4 KiB, at the end of the file", ("fdatasync_4k_extending_per_s",)),
    ("syncs a second: 64 KiB, at the end of the file", ("fdatasync_64k_extending_per_s",)),
    ("frames a second over loopback", ("loopback_frames_per_s",)),
    ("records a second: append, CRC, fdatasync in groups", ("append_crc_sync_per_s",)),
    ("probe: submits a second", ("probe_drain", "submit_per_s")),
    ("probe: drained a second", ("probe_drain", "drain_per_s")),
    ("probe: lives a second", ("probe_life", "life_per_s")),
    ("probe: lives a second, without the wait at the end", ("probe_life", "life_without_wait_per_s")),
    ("probe: lateness p99 at 20 k/s, ms", ("probe_steady_20000", "lateness_ms", "p99")),
    ("probe: lateness p99 at 100 k/s, ms", ("probe_steady_100000", "lateness_ms", "p99")),
]


def limit_lines(results):
    found = [(name, figures.dig(figures.median_limits(results), *path)) for name, path in LIMITS]
    return [[name, figures.number(value)] for name, value in found if value is not None]


def left_out(results, name):
    """Why there is no figure of a subject, or None."""
    if results["subjects"][name].get("skipped"):
        return "skipped: " + results["subjects"][name]["skipped"]
    if not any(run["subject"] == name for run in results["runs"]):
        return f"not part of the {results['form']} form"
    return None


def as_text(results):
    parts = [f"{name}\n" + textwrap.indent(text_table(head, lines), "  ") for name, head, lines in tables(results) + push_tables(results)]
    if limit_lines(results):
        parts.append("Limits of the machine\n" + textwrap.indent(text_table(["", "measured"], limit_lines(results)), "  "))
    missing = [(subject["title"], left_out(results, name)) for name, subject in results["subjects"].items()]
    if any(reason for _, reason in missing):
        parts.append("Not measured\n" + "\n".join(f"  {name}: {reason}" for name, reason in missing if reason))
    if part_lines(results):
        parts.append("Program by program\n" + textwrap.indent(text_table(PART_HEAD, part_lines(results)), "  "))
    parts += ["Targets\n" + textwrap.indent(text_table(head, lines), "  ") for head, lines in verdict_tables(results)]
    return "\n\n".join(parts)


def _machine(results):
    facts, versions = results["machine"], results["versions"]
    system = facts["file_system"]
    shown = ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))
    return (f"{facts['cores']} cores ({facts['cpu']}), {facts['memory_gib']} GiB of memory, {facts['system']}, kernel "
            f"{facts['kernel']}, data on {system['type']}. Run of {results['started'][:10]}, revision {results['revision']}, "
            f"{results['minutes']:.0f} minutes. Versions: {shown}.")


def _subject_lines(results):
    lines = []
    for name, subject in results["subjects"].items():
        told = subject["settings"] + (f"; {subject['note']}" if subject.get("note") else "")
        lines.append([subject["title"], subject["durability"], left_out(results, name) or told])
    return lines


def _cores_lines(results):
    """Who used the cores: a load generator that is the bottleneck would show here."""
    lines = []
    for name in results["subjects"]:
        cells = []
        for key in ("drain", "life", "submit-single"):
            runs = [run for run in results["runs"] if run["subject"] == name and run["key"] == key and not run.get("error")]
            pairs = [(figures.dig(run, "server", "cpu_cores"), figures.dig(run, "figures", "load_cpu_cores")) for run in runs]
            pairs = [pair for pair in pairs if None not in pair]
            middle = sorted(pairs)[len(pairs) // 2] if pairs else None
            cells.append(f"{middle[0]:.2f} + {middle[1]:.2f}" if middle else "")
        if any(cells):
            lines.append([title(results, name), *cells])
    return lines


def _disturbances(results):
    shares = [figures.dig(run, "server", "stolen") for run in results["runs"]]
    most = max((share for share in shares if share is not None), default=0.0)
    return (f"The host gave other machines up to {most:.1%} of the processors' time during a run that counts; "
            f"{len(results['disturbed'])} runs in which it was more than {machine.STOLEN_MAX:.0%} were done again, and are in the "
            "results file.")


def as_markdown(results):
    command = results["command"]
    parts = [
        f"Measured by `{command}`, one subject at a time, in rounds, so that a slow minute hits all alike.",
        _machine(results),
        _disturbances(results),
        *(markdown_table(head, lines) for head, lines in verdict_tables(results)),
        "Ratios say how many times better: more for rates, less for lateness, RAM, disk and recovery. `fsync` and `everysec` say what a "
        "power cut may take; a peer without `fsync` is compared nevertheless. Payloads of 128 bytes. A rate that a subject did not hold "
        "has no ratio. A life counts from the first submit to the last ack, with the 1-5 s of delay. Recovery reads a warm page cache.",
    ]
    for name, alt in PICTURES:
        if pictures(results).get(name):
            parts.append(f"![{alt}](performance/{name}.svg)")
    parts += [f"**{name}**\n\n" + markdown_table(head, lines) for name, head, lines in tables(results) + push_tables(results)]
    parts.append("**Cores used** (server + load generator)\n\n"
                 + markdown_table(["", "drain", "life", "one by one"], _cores_lines(results)))
    if part_lines(results):
        parts.append("**Tocsin on Redis, program by program**\n\n" + markdown_table(PART_HEAD, part_lines(results)))
    if limit_lines(results):
        parts.append("**Limits of the machine**, measured in the same run by `load_bench limits`\n\n"
                     + markdown_table(["", "measured"], limit_lines(results)))
    parts.append("**Subjects**\n\n" + markdown_table(["", "durability", "settings"], _subject_lines(results)))
    return "\n\n".join(parts)


def replace_section(page, section):
    """The page with the text between the markers replaced; the markers must be there, once and in order."""
    if page.count(BEGIN) != 1 or page.count(END) != 1 or page.index(BEGIN) > page.index(END):
        raise ValueError(f"the page needs one {BEGIN} and one {END} behind it")
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n{section}\n{END}{rest.split(END)[1]}"


PICTURES = [
    ("throughput", "Jobs a second: submit, drain, whole lives and one by one, Tocsin and its peers"),
    ("lateness", "Lateness at steady rates: p50, p99 and p99.9, Tocsin and its peers"),
    ("cost", "RAM for a pending job and disk written for a life, Tocsin and its peers"),
    ("recovery", "Recovery of a backlog after kill -9, Tocsin and its peers"),
]


def _label(results, row):
    return re.sub(r"^Redis recipe", "Redis", title(results, row.subject))


def _kind(name):
    return "ours" if name.startswith("tocsin-") else "peer"


def _bars(results, metric, log=True, target=None, target_name=""):
    table = [row for row in figures.rows(results, metric) if row.values and row.held]
    bars = [svg.Bar(_label(results, row), row.median, figures.number(row.median), _kind(row.subject), row.low, row.high)
            for row in table if row.median > 0]
    limit = metric.limit(figures.median_limits(results))
    if limit:
        bars.append(svg.Bar(LIMIT_LABEL, limit, figures.number(limit), "limit"))
    return svg.Panel(metric.title, metric.unit, bars, log, target, target_name)


def _lateness_panel(results, known, rate):
    shares = [known.get(f"late-{rate}-{share}") for share in ("p50", "p99", "p999")]
    if None in shares:
        return None
    by_share = [{row.subject: row for row in figures.rows(results, metric)} for metric in shares]
    lines = []
    for row in figures.rows(results, shares[1]):
        if row.values and all(row.subject in table for table in by_share):
            label = _label(results, row) + ("" if row.held else " (not held)")
            lines.append(_dots(label, [table[row.subject].median for table in by_share], _kind(row.subject)))
    probe = [metric.limit(figures.median_limits(results)) for metric in shares]
    if None not in probe:
        lines.append(_dots(LIMIT_LABEL, probe, "limit"))
    return svg.Panel(f"Lateness at a steady {rate}/s: p50 / p99 / p99.9", "ms", lines, log=True)


def _dots(label, values, kind):
    # What is received in the millisecond in which it is due has no place on a log scale; a hundredth stands for it.
    points = [(max(0.01, value), name) for value, name in zip(values, ("p50", "p99", "p99.9"))]
    return svg.Dots(label, points, " / ".join(map(figures.number, values)), kind)


def pictures(results):
    """The name of each picture and its SVG; those without figures are left out."""
    known = {metric.key: metric for metric in figures.metrics(results)}
    throughput = [_bars(results, known[key]) for key in ("submit", "drain", "life", "single") if key in known]
    lateness = [panel for panel in (_lateness_panel(results, known, rate) for rate in ("5k", "20k", "100k")) if panel]
    cost = [_bars(results, metric, log=False, target=220, target_name="target") for key, metric in known.items()
            if key.startswith("ram-")]
    if "written" in known:
        cost.append(_bars(results, known["written"], target=210, target_name="target"))
    recovery = [_bars(results, metric) for key, metric in known.items() if key.startswith("recovery-")]
    panels = {"throughput": throughput, "lateness": lateness, "cost": cost, "recovery": recovery}
    drawn = {name: svg.chart(alt, panels[name], one_scale=name in ("throughput", "lateness")) for name, alt in PICTURES}
    return {name: picture for name, picture in drawn.items() if picture}


def write(results, docs):
    """Writes the section of performance.md and the pictures beside it; the names of the files."""
    page = pathlib.Path(docs) / "performance.md"
    page.write_text(replace_section(page.read_text(), as_markdown(results)))
    folder = page.with_suffix("")
    folder.mkdir(exist_ok=True)
    written = [page]
    for name, picture in pictures(results).items():
        written.append(folder / f"{name}.svg")
        written[-1].write_text(picture)
    return written
