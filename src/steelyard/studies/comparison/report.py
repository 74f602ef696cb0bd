"""The report of a comparison: findings, and the page that shows them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.model import Estimate, Evidence, Finding, FindingSet
from steelyard.record.clock import now_utc
from steelyard.record.provenance import read_provenance
from steelyard.report.charts.compared import distributions, forest_of_ratios, run_sequence
from steelyard.report.charts.theme import assign_colours
from steelyard.report.charts.thin import MARKS_PER_CHART, envelope
from steelyard.report.dataset import dataset
from steelyard.report.page import Card, CardGroup, Column, Figure, Notice, Page, Section, Table, Value
from steelyard.report.sentence import Part, Statement
from steelyard.studies.comparison.claim import percent, signed_percent
from steelyard.studies.comparison.contender import short
from steelyard.studies.comparison.sample import is_outlier
from steelyard.studies.comparison.terms import MEASURE, STUDY
from steelyard.studies.comparison.text import flags_text, written

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from steelyard.report.dataset import Scalar
    from steelyard.studies.comparison.claim import Claim
    from steelyard.studies.comparison.outcome import Comparison

METHOD_VERSION: Final = 1
FINDINGS_NAME: Final = "findings.json"
_SHARES: Final = 512
_TONES: Final = {"slower": "bad", "faster": "good", "equivalent": "good"}


def findings_of(found: Comparison, result: Path) -> FindingSet:
    """Give one finding per comparison and one per command.

    Parameters
    ----------
    found : Comparison
        What was found.
    result : Path
        Its folder, with ``provenance.json``.
    """
    provenance = read_provenance(result)
    metric = found.terms.metric
    unit, scale = ("bytes", 1.0) if metric == "memory" else ("s", 1e-9)
    claims = tuple(_finding_of_claim(claim, metric.quantity) for claim in found.claims)
    samples = tuple(
        Finding(
            id=f"sample/{contender.name}",
            claim="sample",
            subject={"command": contender.name, "metric": metric.words},
            verdict="descriptive",
            estimates={
                role: Estimate(
                    _number(value * scale), unit, role, units=summary.count, measurements=summary.count
                )
                for role, value in (("median", summary.median), ("mean", summary.mean), ("sd", summary.sd))
            },
            facts={"runs": summary.count, "outliers": summary.outliers},
            evidence=(_evidence(contender.name, metric.quantity, "median, mean, sd"),),
        )
        for contender, summary in zip(found.contenders, found.summaries, strict=True)
    )
    inputs = {name: digest for name, digest in provenance.tables.items() if name == "runs.parquet"}
    return FindingSet(STUDY, provenance.plan_id, METHOD_VERSION, inputs, (*claims, *samples))


def _finding_of_claim(claim: Claim, column: str) -> Finding:
    has_interval = math.isfinite(claim.high)
    return Finding(
        id=f"comparison/{claim.baseline}/{claim.contender}",
        claim="comparison",
        subject={"first": claim.baseline, "second": claim.contender, "metric": claim.metric},
        verdict=str(claim.verdict),
        estimates={
            "ratio": Estimate(
                _number(claim.ratio),
                "ratio",
                claim.method,
                low=claim.low if has_interval else None,
                high=claim.high if has_interval else None,
                level=claim.level if has_interval else None,
                units=min(claim.runs),
                measurements=sum(claim.runs),
            )
        },
        facts={
            "margin_percent": 100 * claim.margin,
            "comparisons_together": claim.family,
            "further_runs": claim.further_runs,
            "is_settled": claim.is_settled,
        },
        evidence=tuple(
            _evidence(name, column, "logarithm of second over first in each block")
            for name in (claim.baseline, claim.contender)
        ),
    )


def _evidence(command: str, column: str, statistic: str) -> Evidence:
    return Evidence("runs.parquet", {"command": command, "phase": MEASURE}, ("block", column), statistic)


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def build_page(found: Comparison, findings: FindingSet) -> Page:
    """Give the page of a comparison.

    Parameters
    ----------
    found : Comparison
        What was found.
    findings : FindingSet
        Of the same comparison.
    """
    by_id = {finding.id: finding for finding in findings.findings}
    ids = [f"comparison/{claim.baseline}/{claim.contender}" for claim in found.claims]
    answer = tuple(
        Statement((Part(f"{claim.sentence}.", name),)) for claim, name in zip(found.claims, ids, strict=True)
    )
    cards = tuple(
        Card(
            title=short(claim.contender),
            value=f"{claim.verdict}: {signed_percent(claim.ratio)}"
            if math.isfinite(claim.ratio)
            else str(claim.verdict),
            note=f"against {short(claim.baseline)}",
            tone=_TONES.get(str(claim.verdict), "warn"),
            finding=name,
        )
        for claim, name in zip(found.claims, ids, strict=True)
    )
    notices = (Notice("Read this with it", found.warnings, "warn"),) if found.warnings else ()
    return Page(
        study=STUDY,
        question=f"Which command takes more {found.terms.metric.words}?",
        about=tuple(_about(found, findings)),
        answer=answer,
        cards=(CardGroup("Verdicts", cards),),
        notices=notices,
        sections=tuple(_sections(found)),
        findings=by_id,
    )


def _about(found: Comparison, findings: FindingSet) -> Iterable[tuple[str, str]]:
    yield "made", now_utc().replace("T", " ")[:16] + " UTC"
    yield "runs", str(len(found.runs))
    yield "margin", percent(found.terms.margin.relative)
    yield "level", f"{100 * found.terms.margin.level:g} %"
    yield "isolation", found.terms.isolation
    yield "seed", str(found.terms.seed)
    yield "plan", findings.plan_id[:12]


def _sections(found: Comparison) -> Iterable[Section]:
    colours = assign_colours([short(contender.name) for contender in found.contenders], {})
    axis = f"{found.terms.metric.words} [{'MiB' if found.terms.metric == 'memory' else 'ms'}]"
    yield Section("ratios", "Differences", "How far each command lies from its baseline.", (_forest(found),))
    yield Section(
        "runs",
        "Runs",
        "Every run, in the order in which it was executed; nothing is left out.",
        (_sequence(found, colours, axis), _distribution(found, colours, axis), _table(found)),
    )


def _forest(found: Comparison) -> Figure:
    baselines = {claim.baseline for claim in found.claims}
    rows: list[dict[str, Scalar]] = []
    for claim in found.claims:
        name = short(claim.contender)
        has_interval = math.isfinite(claim.high)
        row: dict[str, Scalar] = {
            "contender": name if len(baselines) == 1 else f"{name} / {short(claim.baseline)}",
            "percent": _number(100 * (claim.ratio - 1)),
            "low": 100 * (claim.low - 1) if has_interval else None,
            "high": 100 * (claim.high - 1) if has_interval else None,
            "narrow_low": 100 * (claim.narrow[0] - 1) if has_interval else None,
            "narrow_high": 100 * (claim.narrow[1] - 1) if has_interval else None,
            "verdict": str(claim.verdict),
        }
        rows.append(row)
    margin = found.terms.margin.relative
    band = (100 * (1 / (1 + margin) - 1), 100 * margin)
    against = short(baselines.pop()) if len(baselines) == 1 else "the baseline"
    return Figure(
        "ratios-forest",
        "Differences with their intervals",
        f"Thin lines are {100 * found.terms.margin.level:g} % intervals: one beside 0 is a difference. Thick "
        "lines are those of the two one-sided tests: one inside the green band is equivalent.",
        "; ".join(claim.sentence for claim in found.claims),
        forest_of_ratios([str(row["contender"]) for row in rows], band, against),
        {"ratios": dataset(rows)},
    )


def _scaled(found: Comparison, value: float) -> float:
    return value / ((1 << 20) if found.terms.metric == "memory" else 1e6)


def _sequence(found: Comparison, colours: dict[str, str], axis: str) -> Figure:
    name = found.terms.metric.quantity
    limits = {}
    for contender in found.contenders:
        values = np.array(
            [
                getattr(run, name)
                for run in found.runs
                if run.contender == contender.number and run.phase == MEASURE
            ],
            dtype=np.float64,
        )
        outside = values[is_outlier(values)] if values.size else values
        limits[contender.number] = float(outside.min()) if outside.size else math.inf
    rows: list[dict[str, Scalar]] = []
    for order, run in enumerate(found.runs):
        value = getattr(run, name)
        if value is None:
            continue
        is_high = value >= limits[run.contender]
        row: dict[str, Scalar] = {
            "command": short(found.contenders[run.contender].name),
            "position": order,
            "value": _scaled(found, value),
            "kind": "warm-up" if run.phase != MEASURE else "outlier" if is_high else "measured",
            "flags": ", ".join(run.flags),
        }
        rows.append(row)
    shown = np.array([row["value"] for row in rows], dtype=np.float64)
    kept = envelope(shown, MARKS_PER_CHART)
    return Figure(
        "run-sequence",
        "Runs in their order",
        "A drift or a jump hits all commands alike, since they take turns. Outliers are labelled and count.",
        f"{len(rows)} runs of {len(found.contenders)} commands over the order of execution",
        run_sequence(colours, axis, shown.tolist()),
        {"sequence": dataset([rows[at] for at in kept])},
    )


def _distribution(found: Comparison, colours: dict[str, str], axis: str) -> Figure:
    name = found.terms.metric.quantity
    rows: list[dict[str, Scalar]] = []
    for contender in found.contenders:
        values = np.sort(
            [
                _scaled(found, getattr(run, name))
                for run in found.runs
                if run.contender == contender.number and run.phase == MEASURE and getattr(run, name)
            ]
        )
        if not values.size:
            continue
        places = np.unique(np.linspace(0, values.size - 1, min(values.size, _SHARES)).astype(int))
        rows += [
            {
                "command": short(contender.name),
                "value": float(values[at]),
                "percent": 100 * (int(at) + 1) / values.size,
            }
            for at in places
        ]
    return Figure(
        "distribution",
        "Distributions",
        "A curve further right is slower (or larger). Steps are modes, a long end to the right are outliers.",
        "share of runs that took at most so much, one curve per command",
        distributions(colours, axis),
        {"shares": dataset(rows)},
    )


def _table(found: Comparison) -> Table:
    metric = str(found.terms.metric)
    columns = (
        Column("command"),
        *(Column(key, is_number=True) for key in ("median", "spread", "least", "most", "runs", "outliers")),
        Column("flags", is_prose=True),
    )
    rows = []
    for contender, summary in zip(found.contenders, found.summaries, strict=True):
        finding = f"sample/{contender.name}"
        spread = percent(summary.spread) if math.isfinite(summary.spread) else "NA"
        rows.append(
            (
                Value(contender.name),
                Value(written(summary.median, metric), _number(summary.median), finding=finding),
                Value(spread, _number(summary.spread)),
                Value(written(summary.least, metric), _number(summary.least)),
                Value(written(summary.most, metric), _number(summary.most)),
                Value(str(summary.count), summary.count, finding=finding),
                Value(str(summary.outliers), summary.outliers, finding=finding),
                Value(flags_text(summary)),
            )
        )
    note = "Spread: median absolute deviation, scaled to the sd of normal data, over the median."
    return Table("commands", "Commands", columns, tuple(rows), note=note, is_key=True)


def write_report(found: Comparison, result: Path) -> Path:
    """Write ``findings.json``, ``report.html`` and ``figures/`` into a result folder; give the page's path.

    Raises
    ------
    DataError
        If a file cannot be written.
    CapabilityError
        If the packages that draw reports are not installed.
    """
    from steelyard.report.figures import write_figures  # noqa: PLC0415 - needs packages that only reports need
    from steelyard.report.html import write_html  # noqa: PLC0415

    findings = findings_of(found, result)
    findings.write(result / FINDINGS_NAME)
    page = build_page(found, findings)
    path = result / "report.html"
    write_html(page, path)
    write_figures(page, result / "figures")
    return path
