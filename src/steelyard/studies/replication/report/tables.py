"""Tables of the replication report: answers, comparisons, cells, costs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from steelyard.report.fills import (
    NOTHING,
    TONES,
    estimate,
    fact,
    limits,
    of,
    subject,
    subjects,
    verdict,
    word,
    written,
)
from steelyard.report.page import Value
from steelyard.report.table_spec import DOUBT_NOTE, TableSpec, number, prose, shown_where, text
from steelyard.studies.replication.findings.overheads import keeping_first
from steelyard.studies.replication.report.answer import CARD_TONES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.model import Finding, FindingSet
    from steelyard.report.fills import Fill
    from steelyard.report.page import Table
    from steelyard.report.table_spec import ColumnSpec

_OWN_TONES: Final = {
    "different": "higher",
    "undecided": "inconclusive",
    **dict.fromkeys(("spikes gone", "named", "on time", "follows from a row"), "good"),
    **dict.fromkeys(("below every framework", "a new device holds"), "good"),
    **dict.fromkeys(("fewer spikes", "named in part", "costs", "sometimes fails", "played"), "warn"),
    **dict.fromkeys(("still spikes", "more spikes", "loses records", "late", "always fails"), "bad"),
    **dict.fromkeys(("not below every framework", "does not follow from the rows"), "bad"),
    "a new device may differ": "warn",
}
_ANSWER_TONES: Final = {name: "" if tone == "plain" else tone for name, tone in CARD_TONES.items()}
_INTERVAL: Final = "95 % interval"
_CELL_COLUMNS: Final = {
    "throughput": "throughput",
    "mean": "mean",
    "steady_mean": "mean after warm-up",
    "published": "published rule",
    "median": "median of all",
    "p90": "p90",
    "p99": "p99",
    "loop": "loop per call",
    "reached": "reached",
    "failed_share": "failed",
}
_CELL_NOTE: Final = (
    "Intervals are 95 % over launches. The published rule treats every iteration or call as independent: "
    "99.9 % by JMH's rule in e1, 95 % normal elsewhere; wherever launches differ it is too narrow."
)


def _verdict(finding: Finding) -> Value:
    """Give a verdict in its tone; why it is undecided stands below."""
    reason = str(finding.facts.get("reason") or "") if finding.verdict == "undecided" else ""
    return replace(verdict(_OWN_TONES)(finding), note=reason)


_JUDGED: Final = text("verdict", _verdict)


def _toned(key: str) -> Fill:
    """Fill with a fact that is a word like a verdict."""

    def fill(finding: Finding) -> Value:
        said = str(finding.facts[key] or "")
        return Value(said, tone={**TONES, **_OWN_TONES}.get(said, "")) if said else NOTHING

    return fill


def _settings(finding: Finding) -> Value:
    return Value(f"{finding.subject['second']} against {finding.subject['first']}")


def _percent(key: str) -> Fill:
    return written(key, "{:.3g} %".format)


def _microseconds(key: str) -> Fill:
    """Fill with a fact in nanoseconds."""

    def fill(finding: Finding) -> Value:
        value = finding.facts[key]
        if not isinstance(value, int | float):
            return NOTHING
        return Value(f"{value / 1000:.4g} us", float(value), finding=finding.id)

    return fill


def _quotient(role: str) -> Fill:
    """Fill with an estimate as a plain number."""

    def fill(finding: Finding) -> Value:
        value = finding.estimates[role].value
        return NOTHING if value is None else Value(f"{value:.4g}", value, finding=finding.id)

    return fill


def _answer(finding: Finding) -> Value:
    tone = _ANSWER_TONES.get(finding.verdict, "warn")
    return Value(finding.verdict, tone=tone, finding=finding.id)


def _about(findings: FindingSet, claim: str, **wanted: str) -> list[Finding]:
    return [each for each in findings.of(claim) if wanted.items() <= each.subject.items()]


def answer_table(findings: FindingSet, question: str) -> Table | None:
    """Give one row per answer of a question, with what it rests on."""
    columns = (
        text("experiment", subject("experiment"), in_terminal=False),
        text("kind", word("kind")),
        text("answer", _answer),
        number("comparisons", fact("comparisons"), in_terminal=False),
        *(number(name, fact(name)) for name in ("equivalent", "different", "undecided")),
        number(
            "largest",
            estimate("largest", "signed"),
            "largest difference, or the widest interval where none is different",
        ),
        text(_INTERVAL, limits("largest", "change_interval")),
        text("of", word("largest_of"), in_terminal=False),
    )
    return TableSpec(
        f"answers_{question}",
        f"What the answer to {question} rests on",
        columns,
        "An answer rests on the comparisons of the table below and on nothing else.",
        file="answers",
        is_key=True,
    ).build(_about(findings, "answer", question=question))


def _what(finding: Finding) -> Value:
    parts = (finding.subject["configuration"], finding.subject["operation"])
    return Value(" ".join(part for part in parts if part))


def comparison_table(findings: FindingSet, effects: Sequence[str], name: str, title: str) -> Table | None:
    """Give one row per comparison of some effects."""
    columns = (
        text("experiment", subject("experiment")),
        text("what", _what),
        text("metric", subject("metric")),
        text("settings", _settings),
        number("margin", _percent("margin_percent"), in_terminal=False),
        _JUDGED,
        number("difference", estimate("ratio", "signed"), "second against first in a block, geometric mean"),
        text(_INTERVAL, limits("ratio", "change_interval"), in_terminal=False),
        text(
            "published relation",
            _toned("relation"),
            "of the source's intervals over all single values; they are too narrow",
            in_terminal=False,
        ),
        number("first", estimate("first"), in_terminal=False),
        number("second", estimate("second"), in_terminal=False),
        text("remark", word("played"), in_terminal=False),
    )
    spec = TableSpec(name, title, columns, doubt_note=DOUBT_NOTE, file="comparisons")
    return spec.build([each for each in findings.of("comparison") if each.subject["effect"] in effects])


def _operation(finding: Finding) -> Value:
    return Value(finding.subject["operation"] or "all")


def cell_table(findings: FindingSet, experiment: str) -> Table | None:
    """Give one row per cell of an experiment."""

    def measured(role: str, heading: str) -> tuple[ColumnSpec[Finding], ...]:
        """Give an estimate and its interval; what only all operations of e3 together have is left out."""
        return shown_where(
            lambda chosen: any(
                role in each.estimates for each in chosen if each.subject["operation"] or experiment != "e3"
            ),
            number(heading, estimate(role)),
            text(f"{heading}, interval", limits(role), in_terminal=False),
        )

    columns = (
        text("configuration", subject("configuration")),
        text("operation", _operation),
        text("setting", subject("setting")),
        *(column for each in _CELL_COLUMNS.items() for column in measured(*each)),
        number("runs", fact("runs"), in_terminal=False),
    )
    spec = TableSpec(f"cells_{experiment}", "What was measured", columns, _CELL_NOTE, file="cells")
    return spec.build(_about(findings, "cell", experiment=experiment))


def lateness_table(findings: FindingSet, experiment: str) -> Table | None:
    """Give one row per cell under load: how late the driver was itself."""
    columns = (
        *subjects("configuration", "setting"),
        text("driver", _verdict),
        number("late, mean", estimate("mean"), "by itself, not for want of a free connection"),
        number("of the latency", estimate("mean_share"), in_terminal=False),
        text(_INTERVAL, limits("mean_share"), in_terminal=False),
        number("late, p99", estimate("p99")),
        number("of the p99", estimate("p99_share"), in_terminal=False),
        text("its interval", limits("p99_share"), in_terminal=False),
    )
    note = (
        "Latency counts from when a request was due, so the driver's own lateness is in it. On time: both "
        f"shares are certainly below the margin; late: one is certainly above. {DOUBT_NOTE}"
    )
    name, title = f"driver_lateness_{experiment}", "Was the driver on time?"
    spec = TableSpec(name, title, columns, note, file="driver_lateness")
    return spec.build(_about(findings, "driver_lateness", experiment=experiment))


def _cost_of(fill: Fill, ours: Fill) -> Fill:
    """Fill the cost of a framework in one way, that of our own recording in another."""
    return lambda finding: (ours if finding.claim == "recording_cost" else fill)(finding)


def _our_recording(finding: Finding) -> Value:
    return Value(f"our own recording ({finding.subject['language']})")


def _keeping(finding: Finding) -> Finding | None:
    return finding if "kept" in finding.estimates and finding.estimates["kept"].value is not None else None


COSTS: Final = TableSpec(
    "costs",
    "What monitoring costs per call",
    (
        text("what", _cost_of(subject("framework"), _our_recording)),
        text("probe", _cost_of(subject("probe"), lambda _: Value("every call"))),
        text("setting", subject("setting")),
        _JUDGED,
        number("cost per call", _cost_of(estimate("overhead"), estimate("cost"))),
        text(_INTERVAL, _cost_of(limits("overhead"), limits("cost"))),
        *shown_where(
            lambda rows: any("step" in each.estimates for each in rows),
            number("on top of the state before", estimate("step"), in_terminal=False),
        ),
        number("records kept", of(_keeping, estimate("kept")), "on the storage afterwards, of one per call"),
    ),
    "OpenTelemetry drops records that its queue has no room for, Kieker waits and deletes its oldest "
    "files beyond a limit: the cost is that of keeping every record where all are there. What loses "
    "records stands last: it does less than the others, and its cost says nothing beside theirs. "
    f"{DOUBT_NOTE}",
    file="overheads",
)


def cost_table(findings: FindingSet) -> Table | None:
    """Give one row per framework, state and setting, our own recording first."""
    return COSTS.build([*findings.of("recording_cost"), *keeping_first(findings.of("overhead"))])


def _intervention(finding: Finding) -> Value:
    return Value(finding.subject["intervention"], note=str(finding.facts["sentence"]))


def tree_table(findings: FindingSet, setting: str) -> Table | None:
    """Give the rows of the cause tree, as in the source, with rates and verdicts."""
    chosen = _about(findings, "cause_row", setting=setting)
    columns = (
        text("intervention", _intervention),
        _JUDGED,
        number("mean", estimate("mean")),
        number("sigma", _microseconds("sigma_ns")),
        number("min", _microseconds("min_ns"), in_terminal=False),
        number("max", _microseconds("max_ns")),
        number("cv", estimate("cv"), "sigma over mean", in_terminal=False),
        number("max / mean", _quotient("max_over_mean"), in_terminal=False),
        number("spikes", fact("spikes")),
        number("per 10^6 calls", _quotient("peaks")),
        text(_INTERVAL, limits("peaks"), in_terminal=False),
        number("lost per call", estimate("lost"), "time of all spikes above the median"),
        number("against as-it-is", estimate("over_first", "signed"), "of the rate of spikes"),
        text("its interval", limits("over_first", "change_interval"), in_terminal=False),
        number("against the row before", estimate("over_before", "signed"), in_terminal=False),
    )
    return TableSpec(
        f"cause_tree_{setting}",
        "The rows of the tree",
        columns,
        _rule(chosen[0]) if chosen else "",
        file="cause_tree",
        is_key=True,
    ).build(chosen)


def _rule(finding: Finding) -> str:
    facts = finding.facts
    excess = float(facts["excess_ns"] or 0.0)
    return (
        f"A spike is a call, or several in a row, {excess / 1000:.4g} us above the median of its run: "
        f"{facts['rule']}. "
        f"Spikes are gone where the whole interval of their rate, against the program as it is, is below "
        f"{facts['gone_percent']:g} %."
    )


def beside_table(findings: FindingSet, setting: str) -> Table | None:
    """Give one row per kind of event: how many spikes it stands beside."""
    columns = (
        text("event", subject("cause")),
        _JUDGED,
        number("explained", estimate("explained"), "of the time of the spikes, beyond the events above"),
        text(_INTERVAL, limits("explained"), in_terminal=False),
        number("spikes beside", estimate("share"), "spikes during which such an event lies"),
        number("by chance", _percent("by_chance_percent"), "the same with the events at random other times"),
        number("events", fact("events"), in_terminal=False),
        number("significant in", fact("significant_runs"), in_terminal=False),
        number("of runs", fact("runs"), in_terminal=False),
    )
    name, title = f"beside_spikes_{setting}", "What coincides with the spikes"
    spec = TableSpec(name, title, columns, file="beside_spikes")
    return spec.build(_about(findings, "beside_spikes", setting=setting))


DEVICES: Final = TableSpec(
    "devices",
    "Devices and their limits",
    (
        text("device", subject("device")),
        text("kind", _verdict),
        *(text(name, word(name.lower())) for name in ("host", "processor", "kernel", "CPUs", "storage")),
        text("limits", word("limits", "none stated")),
        *shown_where(
            lambda rows: any(each.facts.get("shares_machine_with") for each in rows),
            text("one machine with", word("shares_machine_with"), in_terminal=False),
        ),
        number("runs", fact("runs")),
    ),
    "A played device is a part of another one with stated limits.",
)

SOFTWARE: Final = TableSpec(
    "software",
    "Versions of the programs",
    (text("program", subject("program")), text("", _verdict), prose("version", word("versions"))),
    "A comparison of settings with different versions decides nothing about the settings.",
)

DEVICE_SCATTER: Final = TableSpec(
    "device_scatter",
    "Where one more device would lie",
    (
        *subjects("experiment", "configuration", "technology"),
        _JUDGED,
        number("sd of devices", _percent("between_percent"), "component of variance"),
        *shown_where(
            lambda rows: any("between" in each.estimates for each in rows),
            text("its interval", limits("between"), in_terminal=False),
        ),
        number("sd of runs", _percent("within_percent"), "on one device"),
        text(
            "one more device",
            limits("new_device", "change_interval"),
            "95 % prediction, against the middle of these devices",
        ),
        number("width", _percent("width_percent")),
        number("devices", fact("devices")),
        text("remark", word("played")),
        *shown_where(
            lambda rows: any("reason" in each.facts for each in rows),
            text("why undecided", word("reason"), in_terminal=False),
        ),
    ),
    "With three devices a prediction is wide: that is how little three devices say of a fourth.",
)

SOURCE_COMPARISONS: Final = TableSpec(
    "source_comparisons",
    "What the source printed",
    (
        *subjects("experiment", "what"),
        text("settings", _settings),
        _JUDGED,
        number("difference", estimate("ratio", "signed")),
        text(_INTERVAL, limits("ratio", "change_interval")),
        text("relation of the printed intervals", _toned("relation")),
    ),
    "From printed intervals alone; what they leave out, such as other days, is left out here too.",
)

SOURCE_ROWS: Final = TableSpec(
    "source_rows",
    "The source's rows of the cause tree",
    (
        text("intervention", subject("intervention")),
        *(number(name, fact(f"{name}_us"), unit="us") for name in ("mean", "sigma", "min", "max")),
        number("peaks", fact("peaks")),
        number("sigma / mean", _quotient("cv")),
        number("max / mean", _quotient("max_over_mean")),
    ),
)
"""What the source printed, with what follows from it."""
