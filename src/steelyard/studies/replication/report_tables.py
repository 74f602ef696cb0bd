"""Tables of the replication report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.report.page import Column, Table, Value
from steelyard.studies.replication.overheads import keeping_first
from steelyard.studies.replication.report_answer import TONES as ANSWER_TONES
from steelyard.studies.replication.report_table_parts import (
    NOTHING,
    as_key,
    percent_value,
    table_of,
    verdict_value,
    what_values,
    word_value,
)
from steelyard.studies.report_values import (
    DOUBT_NOTE,
    change_interval_value,
    change_value,
    estimate_value,
    fact_value,
    interval_value,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.model import FindingSet

RQ_TONES: Final = {"good": "good", "bad": "bad", "warn": "warn", "plain": ""}


def answer_table(findings: FindingSet, question: str) -> Table | None:
    """Give one row per answer of a question, with what it rests on."""
    rows = [
        (
            Value(each.subject["experiment"]),
            Value(str(each.facts["kind"])),
            Value(each.verdict, tone=RQ_TONES[ANSWER_TONES.get(each.verdict, "warn")], finding=each.id),
            *(fact_value(each, name) for name in ("comparisons", "equivalent", "different", "undecided")),
            change_value(each, "largest") if "largest" in each.estimates else NOTHING,
            change_interval_value(each, "largest") if "largest" in each.estimates else NOTHING,
            Value(str(each.facts["largest_of"])),
        )
        for each in findings.of("answer")
        if each.subject["question"] == question
    ]
    columns = (
        Column("experiment", in_terminal=False),
        Column("kind"),
        Column("answer"),
        Column("comparisons", is_number=True, in_terminal=False),
        Column("equivalent", is_number=True),
        Column("different", is_number=True),
        Column("undecided", is_number=True),
        Column(
            "largest",
            is_number=True,
            explanation="largest difference, or the widest interval where none is different",
        ),
        Column("95 % interval"),
        Column("of", in_terminal=False),
    )
    note = "An answer rests on the comparisons of the table below and on nothing else."
    title = f"What the answer to {question} rests on"
    return as_key(table_of(f"answers_{question}", title, columns, rows, note=note, file="answers"))


def comparison_table(findings: FindingSet, effects: Sequence[str], name: str, title: str) -> Table | None:
    """Give one row per comparison of some effects."""
    rows = [
        (
            *what_values(each),
            Value(f"{each.subject['second']} against {each.subject['first']}"),
            percent_value(each, "margin_percent"),
            verdict_value(each),
            change_value(each, "ratio"),
            change_interval_value(each, "ratio"),
            word_value(each, "relation"),
            estimate_value(each, "first"),
            estimate_value(each, "second"),
            Value(str(each.facts["played"])),
        )
        for each in findings.of("comparison")
        if each.subject["effect"] in effects
    ]
    columns = (
        Column("experiment"),
        Column("what"),
        Column("metric"),
        Column("settings"),
        Column("margin", is_number=True, in_terminal=False),
        Column("verdict"),
        Column("difference", is_number=True, explanation="second against first in a block, geometric mean"),
        Column("95 % interval", in_terminal=False),
        Column(
            "published relation",
            explanation="of the source's intervals over all single values; they are too narrow",
            in_terminal=False,
        ),
        Column("first", is_number=True, in_terminal=False),
        Column("second", is_number=True, in_terminal=False),
        Column("remark", in_terminal=False),
    )
    return table_of(name, title, columns, rows, note=DOUBT_NOTE, file="comparisons")


def cell_table(findings: FindingSet, experiment: str) -> Table | None:
    """Give one row per cell of an experiment."""
    chosen = [each for each in findings.of("cell") if each.subject["experiment"] == experiment]
    shown = [
        (role, heading)
        for role, heading in CELL_COLUMNS
        if any(role in each.estimates for each in chosen if each.subject["operation"] or experiment != "e3")
    ]
    rows = [
        (
            Value(each.subject["configuration"]),
            Value(each.subject["operation"] or "all"),
            Value(each.subject["setting"]),
            *(
                pair
                for role, _ in shown
                for pair in (
                    (estimate_value(each, role), interval_value(each, role))
                    if role in each.estimates
                    else (NOTHING, NOTHING)
                )
            ),
            fact_value(each, "runs"),
        )
        for each in chosen
    ]
    columns = (
        Column("configuration"),
        Column("operation"),
        Column("setting"),
        *(
            column
            for _, heading in shown
            for column in (Column(heading, is_number=True), Column(f"{heading}, interval", in_terminal=False))
        ),
        Column("runs", is_number=True, in_terminal=False),
    )
    note = (
        "Intervals are 95 % over launches. The published rule takes every iteration or call for independent: "
        "99.9 % by JMH's rule in e1, 95 % normal elsewhere; wherever launches differ it is too narrow."
    )
    return table_of(f"cells_{experiment}", "What was measured", columns, rows, note=note, file="cells")


CELL_COLUMNS: Final = (
    ("throughput", "throughput"),
    ("mean", "mean"),
    ("steady_mean", "mean after warm-up"),
    ("published", "published rule"),
    ("median", "median of all"),
    ("p90", "p90"),
    ("p99", "p99"),
    ("loop", "loop per call"),
    ("reached", "reached"),
    ("failed_share", "failed"),
)


def lateness_table(findings: FindingSet, experiment: str) -> Table | None:
    """Give one row per cell under load: how late the driver was itself."""
    rows = [
        (
            Value(each.subject["configuration"]),
            Value(each.subject["setting"]),
            verdict_value(each),
            *(
                value
                for role in ("mean", "p99")
                for value in (
                    estimate_value(each, role),
                    estimate_value(each, f"{role}_share"),
                    interval_value(each, f"{role}_share"),
                )
            ),
        )
        for each in findings.of("driver_lateness")
        if each.subject["experiment"] == experiment
    ]
    columns = (
        Column("configuration"),
        Column("setting"),
        Column("driver"),
        Column("late, mean", is_number=True, explanation="by itself, not for want of a free connection"),
        Column("of the latency", is_number=True, in_terminal=False),
        Column("95 % interval", in_terminal=False),
        Column("late, p99", is_number=True),
        Column("of the p99", is_number=True, in_terminal=False),
        Column("its interval", in_terminal=False),
    )
    note = (
        "Latency counts from when a request was due, so the driver's own lateness is in it. On time: both "
        "shares are surely below the margin; late: one is surely above. " + DOUBT_NOTE
    )
    name = f"driver_lateness_{experiment}"
    return table_of(name, "Was the driver on time?", columns, rows, note=note, file="driver_lateness")


def cost_table(findings: FindingSet) -> Table | None:
    """Give one row per framework, state and setting, our own recording first."""
    has_steps = any("step" in each.estimates for each in findings.of("overhead"))
    rows = [
        (
            Value(f"our own recording ({each.subject['language']})"),
            Value("every call"),
            Value(each.subject["setting"]),
            verdict_value(each),
            estimate_value(each, "cost"),
            interval_value(each, "cost"),
            *((NOTHING,) if has_steps else ()),
            NOTHING,
        )
        for each in findings.of("recording_cost")
    ]
    rows += [
        (
            Value(each.subject["framework"]),
            Value(each.subject["probe"]),
            Value(each.subject["setting"]),
            verdict_value(each),
            estimate_value(each, "overhead"),
            interval_value(each, "overhead"),
            *([estimate_value(each, "step") if "step" in each.estimates else NOTHING] if has_steps else ()),
            NOTHING if each.estimates["kept"].value is None else estimate_value(each, "kept"),
        )
        for each in keeping_first(findings.of("overhead"))
    ]
    columns = (
        Column("what"),
        Column("probe"),
        Column("setting"),
        Column("verdict"),
        Column("cost per call", is_number=True),
        Column("95 % interval"),
        *([Column("on top of the state before", is_number=True, in_terminal=False)] if has_steps else ()),
        Column("records kept", is_number=True, explanation="on the storage afterwards, of one per call"),
    )
    note = (
        "OpenTelemetry drops records that its queue has no room for, Kieker waits and deletes its oldest "
        "files beyond a limit: the cost is that of keeping every record where all are there. What loses "
        "records stands last: it does less than the others, and its cost says nothing beside theirs. "
        + DOUBT_NOTE
    )
    return table_of("costs", "What watching costs per call", columns, rows, note=note, file="overheads")
