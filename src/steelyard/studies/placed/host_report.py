"""Several hosts in the report of any study: what each is, where they differ, clocks, and what others did."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from steelyard.record.placed.hosts import differing, host_facts, host_names, machine_of, machines_of
from steelyard.report.fills import count, subject, verdict, word, written
from steelyard.report.page import Value
from steelyard.report.sentence import ANY_VERDICT
from steelyard.report.slots import percent
from steelyard.report.table_spec import TableSpec, counted, number, prose, text
from steelyard.studies.report_blocks import host_differences, listed
from steelyard.units import format_seconds, format_significant

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa

    from steelyard.model import Finding, FindingSet
    from steelyard.record.provenance import Provenance
    from steelyard.report.page import Block
    from steelyard.report.sentence import Phrasing
    from steelyard.report.table_spec import ColumnSpec

_SHOWN: Final = ("kernel", "processor", "governor", "microcode", "SMT", "steelyard", "python")
_MOST_SAID: Final = 6
_AHEAD: Final = (
    "{facts.low_s:seconds} to {facts.high_s:seconds} ahead of that of the host that placed the parts[, and "
    "went {facts.drift_low_ppm:number} to {facts.drift_high_ppm:number} ppm faster]"
)
_COMPARABLE: Final = (
    "can be compared to within {facts.apart_s:seconds}: clocks were at most so far from each other, and no "
    "time was shifted by it. No finding compares start times of different hosts"
)
_OTHERS_TOOK: Final = (
    "{facts.others_percent:percent} of one CPU, in {facts.turns_per_s:number} turns a second, while "
    "{facts.parts:count} of {facts.parts_begun:count} parts were running[ ({facts.busiest})]; daemons that "
    "place parts took {facts.placing_percent:percent} ({facts.placing}), Steelyard's process, which waits "
    "while a run is measured, {facts.itself_percent:percent}."
)
HOST_SENTENCES: Final = {
    "clocks": {
        "compared": f"Start times on different hosts {_COMPARABLE}.",
        ANY_VERDICT: f"Start times on {{facts.compared:count}} of {{facts.hosts:count}} hosts {_COMPARABLE}; "
        "the clocks of the others were not compared.",
    },
    "clock": {
        "moved": f"The clock of {{subject.host}} moved meanwhile: it was {_AHEAD}.",
        ANY_VERDICT: f"The clock of {{subject.host}} was {_AHEAD}.",
    },
    "bystanders": {
        "quiet": f"On {{subject.host}} other processes took {_OTHERS_TOOK}",
        ANY_VERDICT: f"On {{subject.host}} other processes took {_OTHERS_TOOK} This is more than "
        "{facts.quiet_percent:percent}: times there may be longer by it.",
    },
}
"""Sentences of the claims of `host_findings` that mean the same in every study."""


def host_blocks(
    phrasing: Phrasing, findings: FindingSet, provenance: Provenance | None, runs: pa.Table
) -> Iterable[Block | None]:
    """Give what is said of several hosts; nothing of one."""
    yield listed(phrasing, findings.of("hosts"))
    bystanders = sorted(findings.of("bystanders"), key=_others_percent, reverse=True)
    yield listed(phrasing, bystanders[:1])
    yield BYSTANDERS.build(bystanders)
    yield listed(phrasing, findings.of("clocks"))
    clocks = findings.of("clock")
    yield listed(phrasing, [each for each in clocks if each.verdict == "moved"][:_MOST_SAID])
    yield CLOCKS.build(clocks)
    if provenance is not None and len(provenance.hosts) > 1:
        facts = {each: host_facts(described) for each, described in provenance.hosts.items()}
        names = host_names(provenance, facts)
        yield host_differences(provenance)
        yield _table(runs, provenance, names, facts)


def _table(
    recorded: pa.Table,
    provenance: Provenance,
    names: Mapping[str, str],
    facts: Mapping[str, Mapping[str, str]],
) -> Block | None:
    runs = Counter(recorded["host_id"].to_pylist())
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
