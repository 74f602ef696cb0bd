"""Tables of causes, devices and the source in the replication report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.report.page import Column, Table, Value
from steelyard.studies.replication.report_table_parts import (
    NOTHING,
    as_key,
    percent_value,
    quotient_value,
    table_of,
    time_value,
    verdict_value,
    word_value,
)
from steelyard.studies.report_values import (
    change_interval_value,
    change_value,
    estimate_value,
    fact_value,
    interval_value,
)

if TYPE_CHECKING:
    from steelyard.model import Finding, FindingSet


def tree_table(findings: FindingSet, setting: str) -> Table | None:
    """Give the rows of the cause tree, as in the source, with rates and verdicts."""
    rows = [
        (
            Value(each.subject["intervention"], note=str(each.facts["sentence"])),
            verdict_value(each),
            estimate_value(each, "mean"),
            *(time_value(each, name) for name in ("sigma_ns", "min_ns", "max_ns")),
            estimate_value(each, "cv"),
            quotient_value(each, "max_over_mean"),
            fact_value(each, "spikes"),
            quotient_value(each, "peaks"),
            interval_value(each, "peaks"),
            estimate_value(each, "lost"),
            change_value(each, "over_first") if "over_first" in each.estimates else NOTHING,
            change_interval_value(each, "over_first") if "over_first" in each.estimates else NOTHING,
            change_value(each, "over_before") if "over_before" in each.estimates else NOTHING,
        )
        for each in findings.of("cause_row")
        if each.subject["setting"] == setting
    ]
    columns = (
        Column("intervention"),
        Column("verdict"),
        Column("mean", is_number=True),
        Column("sigma", is_number=True),
        Column("min", is_number=True, in_terminal=False),
        Column("max", is_number=True),
        Column("cv", is_number=True, explanation="sigma over mean", in_terminal=False),
        Column("max / mean", is_number=True, in_terminal=False),
        Column("spikes", is_number=True),
        Column("per 10^6 calls", is_number=True),
        Column("95 % interval", in_terminal=False),
        Column("lost per call", is_number=True, explanation="time of all spikes above the median"),
        Column("against as-it-is", is_number=True, explanation="of the rate of spikes"),
        Column("its interval", in_terminal=False),
        Column("against the row before", is_number=True, in_terminal=False),
    )
    first = next((each for each in findings.of("cause_row") if each.subject["setting"] == setting), None)
    note = "" if first is None else _rule(first)
    name = f"cause_tree_{setting}"
    return as_key(table_of(name, "The rows of the tree", columns, rows, note=note, file="cause_tree"))


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
    rows = [
        (
            Value(each.subject["cause"]),
            verdict_value(each),
            estimate_value(each, "explained"),
            interval_value(each, "explained"),
            estimate_value(each, "share"),
            percent_value(each, "by_chance_percent"),
            fact_value(each, "events"),
            fact_value(each, "significant_runs"),
            fact_value(each, "runs"),
        )
        for each in findings.of("beside_spikes")
        if each.subject["setting"] == setting
    ]
    columns = (
        Column("event"),
        Column("verdict"),
        Column("explained", is_number=True, explanation="of the time of the spikes, beyond the events above"),
        Column("95 % interval", in_terminal=False),
        Column("spikes beside", is_number=True, explanation="spikes during which such an event lies"),
        Column("by chance", is_number=True, explanation="the same if events came at other times"),
        Column("events", is_number=True, in_terminal=False),
        Column("significant in", is_number=True, in_terminal=False),
        Column("of runs", is_number=True, in_terminal=False),
    )
    name = f"beside_spikes_{setting}"
    return table_of(name, "What comes together with the spikes", columns, rows, file="beside_spikes")


def device_table(findings: FindingSet) -> Table | None:
    """Give one row per device with what is known of it and its limits."""
    rows = [
        (
            Value(each.subject["device"]),
            verdict_value(each),
            *(
                Value(str(each.facts.get(name, "") or ""))
                for name in ("host", "processor", "kernel", "cpus", "storage")
            ),
            Value(str(each.facts["limits"] or "none stated")),
            fact_value(each, "runs"),
        )
        for each in findings.of("device")
    ]
    names = ("device", "kind", "host", "processor", "kernel", "CPUs", "storage", "limits")
    columns = (*(Column(name) for name in names), Column("runs", is_number=True))
    note = "A played device is a part of another one with stated limits."
    return table_of("devices", "Devices and their limits", columns, rows, note=note, file="devices")


def software_table(findings: FindingSet) -> Table | None:
    """Give one row per program whose version is known."""
    rows = [
        (Value(each.subject["program"]), verdict_value(each), Value(str(each.facts["versions"])))
        for each in findings.of("software")
    ]
    columns = (Column("program"), Column(""), Column("version", is_prose=True))
    note = "A comparison of settings with different versions decides nothing about the settings."
    return table_of("software", "Versions of the programs", columns, rows, note=note, file="software")


def scatter_table(findings: FindingSet) -> Table | None:
    """Give one row per experiment that was measured on three devices: where one more would lie."""
    rows = [
        (
            Value(each.subject["experiment"]),
            Value(each.subject["configuration"]),
            Value(each.subject["technology"]),
            verdict_value(each),
            percent_value(each, "between_percent"),
            percent_value(each, "within_percent"),
            change_interval_value(each, "new_device"),
            percent_value(each, "width_percent"),
            fact_value(each, "devices"),
            Value(str(each.facts["played"])),
        )
        for each in findings.of("devices")
    ]
    columns = (
        Column("experiment"),
        Column("configuration"),
        Column("technology"),
        Column("verdict"),
        Column("sd of devices", is_number=True, explanation="component of variance"),
        Column("sd of runs", is_number=True, explanation="on one device"),
        Column("one more device", explanation="95 % prediction, against the middle of these devices"),
        Column("width", is_number=True),
        Column("devices", is_number=True),
        Column("remark"),
    )
    note = "With three devices a prediction is wide: that is how little three devices say of a fourth."
    return table_of("device_scatter", "Where one more device would lie", columns, rows, note=note)


def source_table(findings: FindingSet) -> Table | None:
    """Give what the source printed, judged by the same rules."""
    rows = [
        (
            Value(each.subject["experiment"]),
            Value(each.subject["what"]),
            Value(f"{each.subject['second']} against {each.subject['first']}"),
            verdict_value(each),
            change_value(each, "ratio"),
            change_interval_value(each, "ratio"),
            word_value(each, "relation"),
        )
        for each in findings.of("source_comparison")
    ]
    columns = (
        Column("experiment"),
        Column("what"),
        Column("settings"),
        Column("verdict"),
        Column("difference", is_number=True),
        Column("95 % interval"),
        Column("relation of the printed intervals"),
    )
    note = "From printed intervals alone; what they leave out, such as other days, is left out here too."
    return table_of("source_comparisons", "What the source printed", columns, rows, note=note)


def source_row_table(findings: FindingSet) -> Table | None:
    """Give the source's rows of the cause tree with what follows from them."""
    rows = [
        (
            Value(each.subject["intervention"]),
            *(fact_value(each, name) for name in ("mean_us", "sigma_us", "min_us", "max_us", "peaks")),
            *(quotient_value(each, role) for role in ("cv", "max_over_mean")),
        )
        for each in findings.of("source_row")
    ]
    columns = (
        Column("intervention"),
        Column("mean", "us", is_number=True),
        Column("sigma", "us", is_number=True),
        Column("min", "us", is_number=True),
        Column("max", "us", is_number=True),
        Column("peaks", is_number=True),
        Column("sigma / mean", is_number=True),
        Column("max / mean", is_number=True),
    )
    return table_of("source_rows", "The source's rows of the cause tree", columns, rows)
