"""Figures of the colocation report."""

from __future__ import annotations

from dataclasses import dataclass, replace
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
from steelyard.report.charts.parts import WIDE_SPAN, difference, is_wide
from steelyard.report.charts.theme import MUTED, assign_colours
from steelyard.report.dataset import dataset
from steelyard.report.page import Figure
from steelyard.studies.colocation.findings.isolation import BEFORE
from steelyard.studies.colocation.findings.verdicts import Isolation
from steelyard.studies.colocation.report.answer import judged
from steelyard.studies.colocation.report.charts import (
    FULL_PANEL,
    HALF_PANEL,
    policy_panels,
    protection,
    tails,
    timeline,
)
from steelyard.studies.colocation.tables import QUANTILES, read_bins, read_quantiles

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from steelyard.model import Finding, FindingSet
    from steelyard.report.charts.forest import Row as ForestRow

    Row = dict[str, str | int | float | bool | None]

S_TO_MS: Final = 1e3
MEAN_PART: Final = "mean latency [ms]"
P99_PART: Final = "99th percentile of latency [ms]"
WORK_PART: Final = "iterations of the jobs per bin"
PARTS: Final = {MEAN_PART: ("mean_s", S_TO_MS), P99_PART: ("p99_s", S_TO_MS), WORK_PART: ("iterations", 1.0)}
CLAIMS: Final = ("isolation", "best_effort")
"""Claims about each policy and load."""
WITHIN, BEYOND, OPEN = "within tolerance", "beyond tolerance", "undecided"
QUANTITIES: Final = {"mean": "ratio", "p50": "ratio_p50", "p99": "ratio_p99"}
PREFERRED: Final = {
    "none": MUTED,
    "weights": "#C93F12",
    "idle": "#B98C00",
    "be": "#0072B2",
    "fifo": "#009E73",
    "nice": "#C76B9C",
    "cpu-idle": "#A6761D",
    "default": "#C0392B",
    "be-no-entry": "#3C97D3",
    "be-no-exit": "#8C6BB1",
    "be-no-local": "#1B9E9E",
}
MOST_BINS: Final = 12_000
"""Rows of a figure over time; with more of them neighbouring bins are left out evenly."""


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """What the figures show.

    Parameters
    ----------
    findings : FindingSet
        All findings.
    bins : polars.DataFrame
        The table of bins, median over repetitions, without the A/A twin.
    quantiles : polars.DataFrame or None
        Latencies by share of slower requests; ``None`` where only bins are known.
    policies, loads : tuple of str
        In order of the plan.
    """

    findings: FindingSet
    bins: pl.DataFrame
    quantiles: pl.DataFrame | None
    policies: tuple[str, ...]
    loads: tuple[str, ...]

    @property
    def colours(self) -> dict[str, str]:
        """One colour per policy."""
        return assign_colours(self.policies, PREFERRED)

    @property
    def suffix(self) -> str:
        """Words for a title that say if anything shown was not measured here."""
        origins = dict.fromkeys(
            str(each.facts["origin"])
            for each in self.findings.of("isolation")
            if each.facts["origin"] != "measured"
        )
        return f" ({', '.join(origins)})" if origins else ""


def shown_of(folder: Path, findings: FindingSet) -> Shown:
    """Read what the figures show: the tables that the analysis wrote.

    Raises
    ------
    DataError
        If a table is absent or damaged.
    """
    bins = read_bins(folder).filter(~pl.col("twin"))
    chosen = [each for claim in CLAIMS for each in findings.of(claim)]
    policies = tuple(dict.fromkeys(each.subject["policy"] for each in chosen))
    loads = tuple(dict.fromkeys(each.subject["load"] for each in chosen))
    middle = (
        bins.filter(pl.col("policy").is_in(policies))
        .group_by("policy", "load", "start_s", maintain_order=True)
        .agg(pl.col("mean_s", "p99_s").median(), pl.col("iterations").mean())
    )
    has_quantiles = (folder / "tables" / f"{QUANTILES}.csv").exists()
    return Shown(findings, middle, read_quantiles(folder) if has_quantiles else None, policies, loads)


CHANGE_TONES: Final = {WITHIN: "good", BEYOND: "bad", OPEN: "open"}


def changes_figure(shown: Shown) -> Figure | None:
    """Give how much latency changes beside the jobs, with intervals, against the tolerance."""
    found = [row for each in judged(shown.findings) for row in _change_rows(each, shown)]
    if not found:
        return None
    tolerance = float(found[0]["band_high"] or 0)
    # Faster than before is within the tolerance too, however much.
    lowest = min(float(row["low"] or 0) for row in found)
    rows = labelled_rows([{**row, "band_low": min(lowest, float(row["band_low"] or 0))} for row in found])
    ends = [abs(float(row[key] or 0)) for row in rows for key in ("value", "low", "high")]
    is_wide_axis = max(ends) > WIDE_SPAN * max(tolerance, 1.0)
    against = {str(each.facts["reference"]) for each in judged(shown.findings)}
    reference = "before them" if against == {BEFORE} else f"under {', '.join(sorted(against))}"
    return Figure(
        id="changes_of_latency",
        title=f"Change of latency beside the jobs, by policy{shown.suffix}",
        caption=f"Latency beside the jobs against that {reference}: mean, median and 99th percentile, each "
        "with its interval. A policy keeps the service isolated where all of its lines end within the green "
        f"band: at most the tolerance of {tolerance:g} % slower, or faster."
        + (" The axis is logarithmic beyond the tolerance." if is_wide_axis else "")
        + more_rows(len(found)),
        alternative="Changes of latency with intervals, three rows per policy, and the tolerance as a band",
        spec=forest(
            rows,
            found_tones(CHANGE_TONES, rows),
            difference("value", "change of latency [%]", tolerance if is_wide_axis else None),
        ),
        datasets={"intervals": dataset(rows, MOST_ROWS)},
    )


def _change_rows(finding: Finding, shown: Shown) -> Iterator[ForestRow]:
    """Give a row per quantity, with what the finding says of it."""
    if finding.verdict in {Isolation.OVERLOAD.value, Isolation.BEST.value}:
        return
    load = finding.subject["load"]
    at = f" ({load} %)" if len(shown.loads) > 1 and load.isdecimal() else ""
    tolerance = float(finding.facts["tolerance_percent"] or 0)
    for name, role in QUANTITIES.items():
        ratio = finding.estimates[role]
        if ratio.value is None:
            continue
        said = {WITHIN: str(finding.facts["within"]), BEYOND: str(finding.facts["beyond"])}
        verdict = next((state for state, words in said.items() if name in words), OPEN)
        yield forest_row(
            f"{finding.subject['policy']}{at}, {name}",
            verdict,
            as_percent(ratio.value),
            percents(ratio),
            band=(-100 * tolerance / (100 + tolerance), tolerance),
        )


def timeline_figure(shown: Shown) -> Figure | None:
    """Give latency over time with the iterations of the jobs below."""
    if not shown.policies:
        return None
    rows: list[Row] = []
    step = max(1, len(PARTS) * shown.bins.height // MOST_BINS)
    parts = [part for part, (column, _) in PARTS.items() if shown.bins[column].drop_nulls().len()]
    for part in parts:
        column, scale = PARTS[part]
        for row in shown.bins.gather_every(step).to_dicts():
            value = row[column]
            rows.append(
                {
                    "policy": row["policy"],
                    "load": row["load"],
                    "part": part,
                    "time_s": row["start_s"],
                    "value": None if value is None else value * scale,
                }
            )
        rows += [
            {"policy": None, "load": load, "part": part, "time_s": moment, "value": None}
            for load, moment in _moments(shown)
        ]
    return Figure(
        id="latency_over_time",
        title=f"Latency of the service over time, and the work of the jobs{shown.suffix}",
        caption="Dashed lines are where the jobs start and stop. A policy that protects the "
        "service keeps its line flat from one to the other. Bins of 0.1 s by the time at which requests were "
        "due; with several repetitions their median (of iterations, the mean).",
        alternative="Mean and 99th percentile of latency over time, a colour per policy, iterations below",
        spec=timeline(shown.colours, shown.loads, parts, is_wide=is_wide(shown.bins["p99_s"].to_list())),
        datasets={"bins": dataset(rows)},
        panel_width=FULL_PANEL,
    )


def panels_figure(shown: Shown) -> Figure | None:
    """Give mean and 99th percentile over time, a panel per policy."""
    if not shown.policies:
        return None
    step = max(1, shown.bins.height // MOST_BINS)
    rows: list[Row] = [
        {
            "policy": row["policy"],
            "load": row["load"],
            "time_s": row["start_s"],
            "mean_ms": _ms(row["mean_s"]),
            "p99_ms": _ms(row["p99_s"]),
            "is_moment": False,
        }
        for row in shown.bins.gather_every(step).to_dicts()
        if row["mean_s"] is not None
    ]
    if not rows:
        return None
    policies = dict.fromkeys((str(row["policy"]), str(row["load"])) for row in rows)
    rows += [
        {"policy": policy, "load": load, "time_s": moment, "mean_ms": None, "p99_ms": None, "is_moment": True}
        for policy, load in policies
        for at, moment in _moments(shown)
        if at == load
    ]
    colours = {name: shown.colours[name] for name, _ in policies}
    return Figure(
        id="policies_over_time",
        title=f"Mean and 99th percentile, policy by policy{shown.suffix}",
        caption="The thick line is the mean of each bin, the thin one its 99th percentile; "
        "all panels have one logarithmic scale, so that policies can be compared.",
        alternative="A panel per policy with mean and 99th percentile of latency over time",
        spec=policy_panels(colours, shown.loads),
        datasets={"panels": dataset(rows)},
        panel_width=HALF_PANEL,
    )


def protection_figure(shown: Shown) -> Figure | None:
    """Give what the service suffers over what the jobs get done."""
    prices = {_key(each): each for each in shown.findings.of("price")}
    references = list(dict.fromkeys(each.subject["reference"] for each in prices.values()))
    if len(references) != 1:
        return None
    rows = [
        row
        for each in shown.findings.of("isolation")
        if (row := _protection_row(each, prices, references[0])) is not None
    ]
    loads = list(dict.fromkeys(str(row["load"]) for row in rows))
    if not rows:
        return None
    tolerance = float(rows[0]["tolerance"] or 0.0)
    against = {str(each.facts["reference"]) for each in shown.findings.of("isolation")} - {BEFORE}
    colours = {name: shown.colours[name] for name in dict.fromkeys(str(row["policy"]) for row in rows)}
    return Figure(
        id="protection_and_price",
        title=f"What a policy protects, and what it costs{shown.suffix}",
        caption="Further down the service is better protected, further right the jobs get "
        f"more done. Below the dashed line the service counts as isolated. Work under {references[0]} is "
        "100 %.",
        alternative="Change of the mean latency over the work of the jobs, a point per policy",
        spec=protection(colours, loads, tolerance, references[0], against.pop() if against else BEFORE),
        datasets={"policies": dataset(rows)},
    )


def _protection_row(each: Finding, prices: dict[tuple[str, str], Finding], reference: str) -> Row | None:
    price = prices.get(_key(each))
    if price is None and each.subject["policy"] != reference:
        return None
    work = None if price is None else price.estimates["ratio"]
    change = each.estimates["ratio"]
    if each.verdict == Isolation.BEST.value:  # what the others are compared with is no different from itself
        change = replace(change, value=1.0, low=None, high=None)
    return {
        "policy": each.subject["policy"],
        "load": each.subject["load"],
        "work_percent": 100.0 if work is None else _percent(work.value),
        "work_low": None if work is None else _percent(work.low),
        "work_high": None if work is None else _percent(work.high),
        "change_percent": as_percent(change.value),
        "change_low": as_percent(change.low),
        "change_high": as_percent(change.high),
        "verdict": each.verdict,
        "tolerance": each.facts["tolerance_percent"],
    }


def tail_figure(shown: Shown) -> Figure | None:
    """Give the share of requests that are slower than a latency."""
    if shown.quantiles is None:
        return None
    rows: list[Row] = [
        {
            "policy": row["policy"],
            "load": row["load"],
            "stretch": row["stretch"],
            "share_percent": 100 * row["slower_share"],
            "latency_ms": row["latency_s"] * S_TO_MS,
        }
        for row in shown.quantiles.to_dicts()
        if row["policy"] in shown.policies and row["latency_s"] > 0
    ]
    if not rows:
        return None
    return Figure(
        id="tail_of_latency",
        title=f"How many requests are slower than what{shown.suffix}",
        caption="Where a line meets 1 % is the 99th percentile. Full lines are requests "
        "beside the jobs, dashed ones before them; all repetitions together.",
        alternative="Share of slower requests over latency on logarithmic axes, a sign per policy",
        spec=tails(shown.colours, shown.loads),
        datasets={"tails": dataset(rows)},
    )


def _moments(shown: Shown) -> list[tuple[str, float]]:
    """Give each load with the moments at which the jobs start and stop."""
    of_all = shown.findings.of("settings")[0].facts
    return list(
        dict.fromkeys(
            (each.subject["load"], float(each.facts.get(name, of_all[name]) or 0.0))
            for claim in CLAIMS
            for each in shown.findings.of(claim)
            for name in ("jobs_start_s", "jobs_stop_s")
        )
    )


def _key(each: Finding) -> tuple[str, str]:
    return each.subject["policy"], each.subject["load"]


def _ms(value: float | None) -> float | None:
    return None if value is None else value * S_TO_MS


def _percent(value: float | None) -> float | None:
    return None if value is None else 100 * value
