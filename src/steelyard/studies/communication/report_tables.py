"""Tables of the communication report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.report.page import Column, Table, Value
from steelyard.report.slots import NOT_AVAILABLE, with_unit
from steelyard.studies.communication.labels import labelled
from steelyard.studies.communication.report_answer import prediction_of
from steelyard.studies.communication.rivals import MEASURED_ENDS
from steelyard.studies.report_values import estimate_value, fact_value, interval_value, number_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from steelyard.model import Finding, FindingSet

WHO = Column("transport")


def card_table(findings: FindingSet) -> Table | None:
    """Give one row per model: what a message costs, where it switches, how well it predicts."""
    rows = []
    for card in findings.of("model"):
        own = prediction_of(findings, card, "model")
        rival = prediction_of(findings, card, MEASURED_ENDS)
        rows.append(
            (
                _who(card),
                estimate_value(card, "smallest"),
                estimate_value(card, "bandwidth"),
                Value(str(card.facts["switch_text"] or "none"), finding=card.id),
                _median(own),
                _median(rival),
                fact_value(card, "replications"),
                fact_value(card, "round_trips"),
            )
        )
    columns = (
        WHO,
        Column("smallest", is_number=True, explanation="time of the smallest message, one way, by the model"),
        Column(
            "bandwidth",
            is_number=True,
            explanation="one over what one more byte of the largest message costs",
        ),
        Column("switches", "bytes", explanation="where something switches, as far as it is certain"),
        Column(
            "error", is_number=True, explanation="median error of predicting a replication it has not seen"
        ),
        Column(
            "two numbers",
            is_number=True,
            explanation="the same error of latency + size / bandwidth, measured at either end",
            in_terminal=False,
        ),
        Column(
            "replications",
            is_number=True,
            explanation="launches the model is fitted to",
            in_terminal=False,
        ),
        Column(
            "round trips",
            is_number=True,
            explanation="behind the curve of delays",
            in_terminal=False,
        ),
    )
    return _table("models", "Model cards", columns, rows, is_key=True)


def coefficient_table(findings: FindingSet) -> Table | None:
    """Give the pieces of all curves."""
    rows = [
        (
            _who(each),
            Value(str(each.facts["curve_text"])),
            Value(each.subject["sizes"], _number(each.facts["low_bytes"]), finding=each.id),
            Value(each.verdict),
            estimate_value(each, "base"),
            _error(each, "base"),
            _slope(each),
            _error(each, "slope"),
            estimate_value(each, "rate"),
            fact_value(each, "operations"),
        )
        for each in findings.of("coefficient")
    ]
    columns = (
        WHO,
        Column("curve"),
        Column("sizes", is_number=True),
        Column("kind"),
        Column("base", is_number=True, explanation="level, intercept, or factor of a power law"),
        Column("se base", is_number=True, explanation="standard error of the base"),
        Column("slope", is_number=True, explanation="per byte; the exponent of a power law"),
        Column("se slope", is_number=True, explanation="standard error of the slope"),
        Column("rate", is_number=True, explanation="one over the slope"),
        Column("operations", is_number=True),
    )
    return _table(
        "coefficients",
        "Pieces of the curves",
        columns,
        rows,
        summary=f"{len(rows)} pieces, each with its standard errors",
    )


def boundary_table(findings: FindingSet) -> Table | None:
    """Give where curves change, switches first."""
    chosen = sorted(findings.of("boundary"), key=lambda each: each.verdict != "protocol")
    rows = [
        (
            _who(each),
            Value(f"{each.estimates['at'].value:.0f}", each.estimates["at"].value, finding=each.id),
            Value(f"{each.estimates['at'].low:.0f} to {each.estimates['at'].high:.0f}"),
            Value("switch" if each.verdict == "protocol" else "bend"),
            Value(f"{each.facts['recurrence_percent']:.0f} %", _number(each.facts["recurrence_percent"])),
            number_value(each, "step"),
            Value(str(each.facts["declared"] or "")),
            _mixed(each),
        )
        for each in chosen
    ]
    columns = (
        WHO,
        Column("at", "bytes", is_number=True),
        Column("95 % interval", "bytes"),
        Column(
            "kind",
            explanation="a switch lies at a measured limit, or has a step that recurs or is declared",
        ),
        Column("found again", is_number=True, explanation="part of the resamples with a boundary there"),
        Column("step", "ratio", is_number=True, explanation="cost right of it over cost left of it"),
        Column("known as", explanation="limit that was measured, or is declared, there"),
        Column("both ways", explanation="sizes at which messages follow either side"),
    )
    return _table("boundaries", "Boundaries of the curve of delays", columns, rows)


def threshold_table(findings: FindingSet) -> Table | None:
    """Give up to which size sends return early."""
    rows = [
        (
            _who(each),
            Value(each.subject["kind"]),
            Value(
                f"{'at least ' if each.verdict == 'at least' else ''}{each.facts['bytes']}",
                each.estimates["size"].value,
                finding=each.id,
            ),
            Value(str(each.facts["text"])),
            Value(str(each.facts["declared"])),
        )
        for each in findings.of("threshold")
    ]
    columns = (
        WHO,
        Column("kind"),
        Column("up to", "bytes", is_number=True),
        Column("meaning", is_prose=True),
        Column("declared by the library", is_prose=True),
    )
    return _table("thresholds", "Up to which size sends return early", columns, rows)


def noise_table(findings: FindingSet) -> Table | None:
    """Give the noise by class of size."""
    rows = [
        (
            _who(each),
            Value(each.subject["sizes"], _number(each.facts["low_bytes"]), finding=each.id),
            *(number_value(each, f"p{percentile}") for percentile in (5, 50, 95, 99)),
            number_value(each, "tail_index"),
            Value(str(each.facts["law"])),
        )
        for each in findings.of("noise")
    ]
    columns = (
        WHO,
        Column("sizes", is_number=True),
        *(
            Column(f"p{percentile}", "ratio", is_number=True, explanation="quantile of measured over model")
            for percentile in (5, 50, 95, 99)
        ),
        Column("tail", is_number=True, explanation="Hill's index of the largest 2 %; smaller is heavier"),
        Column("law", is_prose=True),
    )
    return _table("noise", "Noise: measured over the model", columns, rows)


def prediction_table(findings: FindingSet) -> Table | None:
    """Give the errors of every predictor on the held-out replication."""
    rows = [
        (
            _who(each),
            Value(str(each.facts["response_text"])),
            Value(each.subject["predictor"], finding=each.id),
            *(estimate_value(each, role) for role in ("median", "mean", "p90", "floor")),
            fact_value(each, "bins"),
        )
        for each in findings.of("prediction")
    ]
    columns = (
        WHO,
        Column("of"),
        Column("predictor"),
        Column("median", is_number=True),
        Column("mean", is_number=True),
        Column("p90", is_number=True, explanation="nine of ten bins are predicted better"),
        Column("floor", is_number=True, explanation="median error that the medians measured have themselves"),
        Column("bins", is_number=True, explanation="of 50 round trips of neighbouring sizes"),
    )
    return _table("prediction_errors", "Errors of predicting the held-out replication", columns, rows)


def distance_table(findings: FindingSet) -> Table | None:
    """Give how well drawn noise resembles measured noise."""
    rows = [
        (
            _who(each),
            Value(each.subject["sizes"], _number(each.facts["low_bytes"]), finding=each.id),
            *(number_value(each, role) for role in ("distance", "without_noise")),
            *(show(each, role) for role in ("p50", "p95", "p99") for show in (number_value, interval_value)),
            Value(each.verdict, finding=each.id),
        )
        for each in findings.of("noise_distance")
    ]
    columns = (
        WHO,
        Column("sizes", is_number=True),
        Column("distance", is_number=True, explanation="Kolmogorov-Smirnov; 0 is alike, 1 is apart"),
        Column("without noise", is_number=True, explanation="the same for the curve alone"),
        Column("p50", "ratio", is_number=True, explanation="simulated over measured median"),
        Column("95 % of p50"),
        Column("p95", "ratio", is_number=True, explanation="the same of the 95 % quantile"),
        Column("95 % of p95"),
        Column("p99", "ratio", is_number=True, explanation="the same of the 99 % quantile"),
        Column("95 % of p99", explanation="from 0: too few messages for an upper limit of the measured one"),
        Column("verdict", explanation="all intervals lie within 0.9 to 1.1, or one lies wholly beyond"),
    )
    return _table("noise_distances", "Simulated noise against measured noise", columns, rows)


def crossed_table(findings: FindingSet) -> Table | None:
    """Give the errors of predicting each replication from the others."""
    rows = [
        (
            _who(each),
            Value(each.subject["predictor"], finding=each.id),
            *(estimate_value(each, role) for role in ("median", "mean", "p90")),
        )
        for each in findings.of("crossed_prediction")
    ]
    columns = (
        WHO,
        Column("predictor"),
        Column("median", is_number=True),
        Column("mean", is_number=True),
        Column("p90", is_number=True),
    )
    title = "The same within the replications of the models: each predicted from the others"
    return _table("crossed_predictions", title, columns, rows)


def carry_over_table(findings: FindingSet) -> Table | None:
    """Give costs by the size of the message before."""
    rows = [
        (
            _who(each),
            Value(each.subject["sizes"], _number(each.facts["low_bytes"]), finding=each.id),
            Value(each.subject["after"], _number(each.facts["after_low_bytes"])),
            number_value(each, "ratio"),
            interval_value(each, "ratio"),
            Value(str(each.estimates["ratio"].measurements), float(each.estimates["ratio"].measurements)),
        )
        for each in findings.of("carry_over_class")
    ]
    columns = (
        WHO,
        Column("sizes", is_number=True),
        Column("after", is_number=True, explanation="size of the message before"),
        Column("measured / model", is_number=True),
        Column("95 % interval"),
        Column("messages", is_number=True),
    )
    return _table(
        "carry_over_by_previous_size",
        "What a message owes to the one before",
        columns,
        rows,
        summary=f"{len(rows)} classes of size and size before",
    )


def call_table(findings: FindingSet) -> Table | None:
    """Give the cost of calls without a message."""
    rows = [
        (
            _who(each),
            Value(str(each.facts["text"])),
            estimate_value(each, "cost"),
            interval_value(each, "cost"),
            Value(str(each.facts["reason"])),
        )
        for each in findings.of("call")
    ]
    columns = (
        WHO,
        Column("call"),
        Column("cost", is_number=True),
        Column("95 % interval"),
        Column("remark", is_prose=True),
    )
    return _table("calls", "Calls without a message", columns, rows)


def clock_table(findings: FindingSet) -> Table | None:
    """Give what is known about the clocks of the endpoints."""
    rows = [
        (
            _who(each),
            Value(each.subject["replication"], float(each.subject["replication"]), finding=each.id),
            Value(each.verdict, 0.0) if each.verdict == "one clock" else estimate_value(each, "error"),
            number_value(each, "drift"),
            estimate_value(each, "residual"),
            fact_value(each, "stamp_cost_ns"),
            fact_value(each, "withheld"),
        )
        for each in findings.of("clock")
    ]
    columns = (
        WHO,
        Column("replication", is_number=True),
        Column("error of the offset", is_number=True, explanation="half of the narrowest bounds"),
        Column("drift", "ppb", is_number=True),
        Column(
            "residual",
            is_number=True,
            explanation="largest distance of a group of probes from the line; of one clock: from 0",
        ),
        Column("stamp", "ns", is_number=True, explanation="cost of one stamp"),
        Column("withheld", is_number=True, explanation="one-way times too short to be given"),
    )
    return _table("clocks", "Clocks of the endpoints", columns, rows, summary="one row per replication")


def _table(
    name: str,
    title: str,
    columns: Sequence[Column],
    rows: Iterable[tuple[Value, ...]],
    *,
    is_key: bool = False,
    summary: str = "",
) -> Table | None:
    found = tuple(rows)
    if not found:
        return None
    return Table(
        name, title, tuple(columns), found, file=f"tables/{name}.csv", is_key=is_key, summary=summary
    )


def _who(finding: Finding) -> Value:
    return Value(labelled(finding), finding=finding.id)


def _median(finding: Finding | None) -> Value:
    return Value("not predicted") if finding is None else estimate_value(finding, "median")


def _slope(finding: Finding) -> Value:
    if finding.verdict == "constant":
        return Value("")
    return estimate_value(finding, "slope") if finding.verdict == "line" else number_value(finding, "slope")


def _error(finding: Finding, role: str) -> Value:
    error = _number(finding.facts[f"{role}_error"])
    if error is None or (role == "slope" and finding.verdict == "constant"):
        return Value("" if finding.verdict == "constant" else NOT_AVAILABLE)
    unit = finding.estimates[role].unit
    return Value(f"{error:.2g}" if unit == "exponent" else with_unit(error, unit), error, finding=finding.id)


def _mixed(finding: Finding) -> Value:
    low, high = finding.facts["mixed_low_bytes"], finding.facts["mixed_high_bytes"]
    if low is None or high is None:
        return Value("")
    return Value(f"{low:.0f} to {high:.0f} B ({finding.facts['mixed_operations']} messages)")


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None
