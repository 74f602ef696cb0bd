"""Several hosts in the report: what each is, where they differ, how far their times differ."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from steelyard.record.placed.hosts import differing, host_facts, host_names, machine_of, machines_of
from steelyard.report.fills import count, estimate, limits, subject, subjects, verdict, word, written
from steelyard.report.page import Value
from steelyard.report.slots import percent
from steelyard.report.table_spec import DOUBT_NOTE, TableSpec, counted, number, prose, text
from steelyard.studies.report_blocks import host_differences, listed
from steelyard.studies.stability.report.sentences import PHRASING
from steelyard.units import format_seconds, format_significant

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from steelyard.model import Finding
    from steelyard.record.provenance import Provenance
    from steelyard.report.page import Block
    from steelyard.report.table_spec import ColumnSpec
    from steelyard.studies.stability.report.data import RecordedTables

_SHOWN: Final = ("kernel", "processor", "governor", "microcode", "SMT", "steelyard", "python")
_MOST_SAID: Final = 6
_TONES: Final = {"hosts differ": "slower", "hosts agree": "good", "outlier": "warn"}


def blocks(recorded: RecordedTables) -> Iterable[Block | None]:
    """Give all that is said of several hosts; nothing of one."""
    findings, provenance = recorded.findings, recorded.provenance
    yield listed(PHRASING, findings.of("hosts"))
    bystanders = sorted(findings.of("bystanders"), key=_others_percent, reverse=True)
    yield listed(PHRASING, bystanders[:1])
    yield BYSTANDERS.build(bystanders)
    yield listed(PHRASING, findings.of("clocks"))
    clocks = findings.of("clock")
    yield listed(PHRASING, [each for each in clocks if each.verdict == "moved"][:_MOST_SAID])
    yield CLOCKS.build(clocks)
    if provenance is not None and len(provenance.hosts) > 1:
        facts = {each: host_facts(described) for each, described in provenance.hosts.items()}
        names = host_names(provenance, facts)
        yield host_differences(provenance)
        yield _table(recorded, provenance, names, facts)
    outliers = [each for each in findings.of("host_outlier") if each.verdict == "outlier"]
    yield listed(PHRASING, outliers[:_MOST_SAID])
    yield OUTLIERS.build(findings.of("host_outlier"))
    scatters = sorted(findings.of("host_scatter"), key=lambda each: -(each.estimates["between"].value or 0))
    yield listed(PHRASING, scatters[:1])
    yield SCATTER.build(scatters)


def _table(
    recorded: RecordedTables,
    provenance: Provenance,
    names: Mapping[str, str],
    facts: Mapping[str, Mapping[str, str]],
) -> Block | None:
    runs = Counter(recorded.runs["host_id"].to_pylist())
    machines = machines_of(facts)
    noisy: Counter[str] = Counter()
    looks: Counter[str] = Counter()
    for session in provenance.sessions:
        seen = {look.get("batch") for look in session.gate}
        looks[session.host_id] += len(seen)
        noisy[session.host_id] += len(
            {look.get("batch") for look in session.gate if look.get("quiet") is False}
        )
    differs = differing(facts)

    def fact(name: str) -> ColumnSpec[str]:
        def fill(host: str) -> Value:
            said = facts[host].get(name, "")
            is_odd = name in differs and said != next(iter(differs[name]))
            return Value(said, tone="warn" if is_odd else "")

        return prose(name, fill)

    def machine(host: str) -> Value:
        others = [names[each] for each in machines[machine_of(host)] if each != host]
        return Value(f"with {', '.join(others)}" if others else "its own")

    return TableSpec(
        "hosts",
        "The hosts that measured",
        (
            text("host", lambda host: Value(names[host])),
            prose("machine", machine),
            *map(fact, _SHOWN),
            number("runs", lambda host: Value(f"{runs[host]}", float(runs[host]))),
            text("batches beside other load", lambda host: Value(f"{noisy[host]} of {looks[host]}")),
        ),
        "Marked: another value than most hosts have.",
        file=None,
    ).build(list(facts))


def _others_percent(of: Finding) -> float:
    return float(of.facts["others_percent"] or 0)


CLOCKS: Final = TableSpec(
    "host_clocks",
    "Clocks of the hosts",
    (
        text("host", subject("host")),
        text("verdict", verdict({"moved": "warn"})),
        number("ahead from", written("low_s", format_seconds)),
        number("to", written("high_s", format_seconds)),
        *(
            number(title, written(fact, lambda value: f"{format_significant(value, 3)} ppm"))
            for title, fact in (("faster from", "drift_low_ppm"), ("up to", "drift_high_ppm"))
        ),
        number("readings", count("readings")),
    ),
    "Each host's clock against that of the host that placed the parts, by round trips of ssh at the begin "
    "and the end of a part, or by the times in its journal. The limits enclose every reading.",
    file=None,
    summary=lambda rows: counted(row.verdict for row in rows),
)

BYSTANDERS: Final = TableSpec(
    "bystanders",
    "What other processes did on each host",
    (
        text("host", subject("host")),
        text("verdict", verdict({"busy": "warn", "quiet": "good"})),
        *(
            number(title, written(fact, percent))
            for title, fact in (
                ("all others", "others_percent"),
                ("that place parts", "placing_percent"),
                ("Steelyard", "itself_percent"),
            )
        ),
        number("turns/s", written("turns_per_s", lambda value: format_significant(value, 3))),
        text("busiest", word("busiest")),
        number("parts", count("parts")),
        number("parts begun", count("parts_begun")),
    ),
    "CPU time from the begin to the end of a host's parts, in percent of one CPU: by processes that are no "
    "part of the study, by daemons of the cluster and of ssh among them, and by Steelyard's process, which "
    "works between runs and waits meanwhile. A part that was killed does not say it.",
    file=None,
    summary=lambda rows: counted(row.verdict for row in rows),
)

OUTLIERS: Final = TableSpec(
    "host_outliers",
    "Hosts against the middle of all hosts",
    (
        *subjects("host", "metric"),
        text("verdict", verdict(_TONES)),
        number("most clearly", estimate("ratio", "signed")),
        text("in", word("workload")),
        number("cells apart", count("cells_apart")),
        number("cells", count("cells")),
    ),
    "An outlier differs by more than the margin from more than half of the hosts, in the same direction. "
    "The chance of any false outlier among all hosts and cells is 5 % (partial conjunction of Welch tests, "
    "Holm).",
    file=None,
    summary=lambda rows: counted(row.verdict for row in rows),
)

SCATTER: Final = TableSpec(
    "host_scatter",
    "Variation between hosts",
    (
        text("metric", subject("metric")),
        *subjects("setup", "isolation", "workload"),
        text("verdict", verdict(_TONES)),
        number("between hosts", estimate("between")),
        text("95%", limits("between")),
        text("one more host", limits("new_host", "change_interval")),
        number("hosts", count("hosts")),
    ),
    "Between hosts: standard deviation of hosts' mean times, relative. One more host: where its mean is "
    "expected relative to the middle of these, from three hosts on.",
    DOUBT_NOTE,
    file=None,
    summary=lambda rows: counted(row.verdict for row in rows),
)
