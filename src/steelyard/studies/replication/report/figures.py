"""Figures of the replication report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from steelyard.report.charts.forest import (
    MOST_ROWS,
    as_percent,
    forest,
    forest_row,
    found_tones,
    labelled_rows,
    more_rows,
    percents,
)
from steelyard.report.charts.parts import difference, is_wide
from steelyard.report.charts.theme import assign_colours
from steelyard.report.dataset import dataset
from steelyard.report.page import Figure
from steelyard.studies.replication.findings.effects import BY_CONTAINER
from steelyard.studies.replication.findings.overheads import LOSES, keeping_first
from steelyard.studies.replication.findings.questions import ELSEWHERE
from steelyard.studies.replication.report.cause_tree_chart import tree_edges, tree_node, tree_of_causes
from steelyard.studies.replication.report.charts import (
    calls_over_time,
    cost_bars,
    latency_by_operation,
)
from steelyard.studies.replication.tables import read_series

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from steelyard.model import Estimate, Finding, FindingSet
    from steelyard.report.charts.forest import Row as ForestRow

    Row = dict[str, str | int | float | bool | None]

MOST_SERIES: Final = 24
"""Loops of calls that a figure offers: the first repetition of each cell."""

WIDE_PERCENT: Final = 60.0
HALF_PANEL: Final = 330
EDGE: Final = 0.7
"""Lower edge of a logarithmic axis, over the smallest number that is shown."""
OWN: Final = "our own recording"
PREFERRED: Final = {
    OWN: "#009E73",
    "inactive": "#7C8894",
    "collecting": "#3C97D3",
    "writing": "#0072B2",
    LOSES: "#C9CED3",
}
NS_PER_US: Final = 1e3
NS_PER_MS: Final = 1e6


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """What the figures show.

    Parameters
    ----------
    findings : FindingSet
        All findings.
    series : polars.DataFrame or None
        The table of calls in bins; ``None`` where no run has calls.
    """

    findings: FindingSet
    series: pl.DataFrame | None


def shown_of(folder: Path, findings: FindingSet) -> Shown:
    """Read what the figures show: the tables that the analysis wrote.

    Raises
    ------
    DataError
        If a table is damaged.
    """
    return Shown(findings, read_series(folder))


def pair_name(finding: Finding) -> str:
    """Name a comparison."""
    subject = finding.subject
    what = " ".join(
        text for text in (subject["configuration"], subject["operation"]) if text and text != "mixed"
    )
    metric = " p99" if subject["metric"] == "p99" else ""
    return f"{subject['experiment']} {what}{metric}: {subject['second']} / {subject['first']}"


DIFFERENCE_TONES: Final = {"equivalent": "good", "different": "bad", "undecided": "open"}


def opening_figure(shown: Shown) -> Figure | None:
    """Give what answers the questions: differences, else the causes, else what monitoring costs."""
    trees = shown.findings.of("cause_tree")
    tree = tree_figure(shown, trees[0].subject["setting"]) if trees else None
    return difference_figure(shown) or tree or cost_figure(shown)


def difference_figure(shown: Shown) -> Figure | None:
    """Give the relative differences elsewhere and in a container with their intervals against the margin."""
    chosen = [
        each
        for each in shown.findings.of("comparison")
        if each.subject["effect"] in {*ELSEWHERE, BY_CONTAINER} and each.estimates["ratio"].value is not None
    ]
    if not chosen:
        return None
    chosen.sort(key=lambda each: each.verdict != "different")
    rows = labelled_rows([_difference_row(each) for each in chosen])
    largest = max(abs(float(row[name] or 0.0)) for row in rows for name in ("value", "low", "high"))
    is_wide_axis = largest > WIDE_PERCENT
    played = " (between parts of one machine)" if any(each.facts["played"] for each in chosen) else ""
    return Figure(
        id="differences",
        title=f"Differences elsewhere and in a container{played}",
        caption="The green band is the margin of equivalence. A thin line is the interval of a difference; "
        "one wholly outside the band is a difference. A thick line is the interval of two one-sided "
        "tests; one that lies wholly inside is equivalent, and anything else is undecided. "
        "Throughput is better to the right, response time to the left."
        + (" The axis is logarithmic beyond 10 % on either side." if is_wide_axis else "")
        + more_rows(len(chosen)),
        alternative="Relative differences with intervals, one row per comparison, and the margin as a band",
        spec=forest(
            rows,
            found_tones(DIFFERENCE_TONES, rows),
            difference("value", "difference of the second [%]", 10.0 if is_wide_axis else None),
        ),
        datasets={"intervals": dataset(rows, MOST_ROWS)},
    )


def _difference_row(finding: Finding) -> ForestRow:
    margin = float(finding.facts["margin_percent"] or 0.0)
    return forest_row(
        pair_name(finding),
        finding.verdict,
        as_percent(finding.estimates["ratio"].value),
        percents(finding.estimates["ratio"]),
        narrow=percents(finding.estimates["equivalence"]),
        band=(-100 * margin / (100 + margin), margin),
    )


def cost_figure(shown: Shown) -> Figure | None:
    """Give what frameworks and our own recording cost per call."""
    rows = [
        _cost_row(OWN, f"{OWN} ({each.subject['language']})", each, each.estimates["cost"])
        for each in shown.findings.of("recording_cost")
    ]
    rows += [
        _cost_row(
            LOSES if each.verdict == LOSES else each.subject["probe"],
            f"{each.subject['framework']} {each.subject['probe']}{_kept(each)}",
            each,
            each.estimates["overhead"],
        )
        for each in keeping_first(shown.findings.of("overhead"))
    ]
    if not rows:
        return None
    several = len({str(row["setting"]) for row in rows}) > 1
    if several:
        rows = [{**row, "label": f"{row['label']}, {row['setting']}"} for row in rows]
    kinds = list(dict.fromkeys(str(row["kind"]) for row in rows))
    return Figure(
        id="costs",
        title="What monitoring costs per call",
        caption="The bar is the mean response time with a probe less that without one; the "
        "line is its 95 % interval over launches. Our own recording is the time of a loop whose calls are "
        "kept less that of a loop of which only the whole is timed. What loses records is drawn in grey and "
        "last: its bar is not the cost of keeping every record, and no other bar is compared with it.",
        alternative="Cost per call with intervals, a bar per framework and state of its probe",
        spec=cost_bars(
            [str(row["label"]) for row in rows],
            assign_colours(kinds, PREFERRED),
            is_wide=is_wide([abs(float(row["cost"] or 0.0)) for row in rows]),
        ),
        datasets={"costs": dataset(rows)},
    )


def _kept(overhead: Finding) -> str:
    """Say in the label of a bar that it is not the cost of keeping every record."""
    kept = overhead.estimates["kept"].value
    return f", keeps {kept:.0f} %" if overhead.verdict == LOSES and kept is not None else ""


def _cost_row(kind: str, label: str, finding: Finding, cost: Estimate) -> Row:
    return {
        "label": label,
        "kind": kind,
        "setting": finding.subject["setting"],
        "cost": cost.value,
        "low": cost.low,
        "high": cost.high,
    }


def series_figure(shown: Shown, experiment: str) -> Figure | None:
    """Give the calls of the first repetition of each cell over time."""
    if shown.series is None:
        return None
    chosen = shown.series.filter(pl.col("experiment") == experiment)
    names = _loops(chosen)
    if not names:
        return None
    rows: list[Row] = [
        {
            "name": name,
            "time_s": row["start_s"],
            "middle_us": row["middle_ns"] / NS_PER_US,
            "largest_us": row["largest_ns"] / NS_PER_US,
        }
        for name, part in names.items()
        for row in part.to_dicts()
        if row["middle_ns"] > 0
    ]
    is_tree = experiment == "causes"
    return Figure(
        id=f"calls_over_time_{experiment}",
        title="Spikes over time, loop by loop" if is_tree else "Response times over time, loop by loop",
        caption="Calls in order, in up to 500 bins. The line is the median of each bin, a "
        "point its longest call. A line that falls at first is warm-up; points far above it are spikes. "
        "First repetition of each cell.",
        alternative="Median and longest response time of each bin of calls over time",
        spec=calls_over_time(list(names), next(iter(names))),
        datasets={"series": dataset(rows)},
    )


def _loops(series: pl.DataFrame) -> dict[str, pl.DataFrame]:
    settings = series["setting"].unique().len()
    found: dict[str, pl.DataFrame] = {}
    for (configuration, setting), part in series.group_by(["configuration", "setting"], maintain_order=True):
        name = str(configuration) if settings == 1 else f"{configuration}, {setting}"
        found[name] = part
    return dict(list(found.items())[:MOST_SERIES])


def _draw_to_the_edge(rows: list[Row]) -> None:
    """Give each row where its line begins: an interval that reaches 0 has no place on a logarithmic axis."""
    shown = [float(value) for row in rows for key in ("low_ms", "value_ms") if (value := row[key])]
    edge = EDGE * min(shown)
    for row in rows:
        row["from_ms"] = edge if row["high_ms"] is not None and row["low_ms"] is None else row["low_ms"]


def latency_figure(shown: Shown, experiment: str) -> Figure | None:
    """Give the latency of each operation in each setting."""
    cells = [
        each
        for each in shown.findings.of("cell")
        if each.subject["experiment"] == experiment and each.subject["operation"] and "mean" in each.estimates
    ]
    rows: list[Row] = [
        {
            "operation": _operation(each, cells),
            "setting": each.subject["setting"],
            "metric": metric,
            "value_ms": _ms(each.estimates[metric].value),
            "low_ms": _positive(_ms(each.estimates[metric].low)),
            "high_ms": _ms(each.estimates[metric].high),
        }
        for each in cells
        for metric in ("mean", "p99")
    ]
    if not rows:
        return None
    _draw_to_the_edge(rows)
    settings = list(dict.fromkeys(str(row["setting"]) for row in rows))
    operations = list(dict.fromkeys(str(row["operation"]) for row in rows))
    return Figure(
        id=f"latency_{experiment}",
        title="Latency by operation and setting",
        caption="Each point is the mean over launches of a launch's mean, or of its 99th "
        "percentile, from the time at which a request was due; the line is its 95 % interval over launches, "
        "and begins at the lower edge where that reaches 0.",
        alternative="Mean and 99th percentile of latency by operation, a colour per setting",
        spec=latency_by_operation(assign_colours(settings, {}), operations),
        datasets={"latencies": dataset(rows)},
        panel_width=HALF_PANEL,
    )


def _operation(finding: Finding, cells: Sequence[Finding]) -> str:
    operation = finding.subject["operation"]
    several = len({each.subject["configuration"] for each in cells}) > 1
    return f"{finding.subject['configuration']} {operation}" if several else operation


def tree_figure(shown: Shown, setting: str) -> Figure | None:
    """Draw the tree of causes of one setting."""
    chosen = [each for each in shown.findings.of("cause_row") if each.subject["setting"] == setting]
    if len(chosen) < 2:  # noqa: PLR2004 - a tree has a branch
        return None
    count = len(chosen) - 1
    rows: list[Row] = [
        dict(
            tree_node(
                place - 1 if place else None, count, each.subject["intervention"], _told(each), each.verdict
            )
        )
        for place, each in enumerate(chosen)
    ]
    return Figure(
        id=f"tree_of_causes_{setting}",
        title=f"The tree of causes ({setting})",
        caption="Each box changes one thing of the program on the left. Where the spikes are "
        "gone, that thing was needed for them.",
        alternative="The program as it is, and a branch per intervention with the rate of its spikes",
        spec=tree_of_causes(count),
        datasets={"nodes": dataset(rows), "edges": dataset([dict(each) for each in tree_edges(count)])},
    )


def _told(each: Finding) -> str:
    rate = each.estimates["peaks"].value
    text = "" if rate is None else f"{rate:.4g} spikes per million calls"
    left = each.estimates.get("over_first")
    if left is None or left.value is None or left.low is None or left.high is None:
        return text
    shares = [f"{100 * value:.3g}" for value in (left.value, left.low, left.high)]
    return f"{text}: {shares[0]} % ({shares[1]} to {shares[2]} %) are left, {each.verdict}"


def _ms(value: float | None) -> float | None:
    return None if value is None else value / NS_PER_MS


def _positive(value: float | None) -> float | None:
    return value if value is not None and value > 0 else None
