"""Tables of the communication report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.report.fills import NOTHING, estimate, fact, limits, linked, subject, subject_number, word
from steelyard.report.page import Value
from steelyard.report.slots import with_unit
from steelyard.report.table_spec import TableSpec, number, prose, text
from steelyard.studies.communication.labels import labelled
from steelyard.studies.communication.model.rivals import MEASURED_ENDS
from steelyard.studies.communication.report.answer import prediction_of

if TYPE_CHECKING:
    from steelyard.model import Finding, FindingSet
    from steelyard.report.fills import Fill
    from steelyard.report.page import Table


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _in_order_of(key: str, part: str) -> Fill:
    """Fill with a part of the subject, sorted by a fact."""
    return lambda each: Value(each.subject[part], _number(each.facts[key]))


def _plain(role: str) -> Fill:
    return estimate(role, "significant")


_WHO: Final = text("transport", linked(lambda finding: Value(labelled(finding))))
_SIZES: Final = number("sizes", linked(_in_order_of("low_bytes", "sizes")))
_PREDICTOR: Final = text("predictor", linked(subject("predictor")))
_KIND: Final = text("kind", subject("kind"))


def card_table(findings: FindingSet) -> Table | None:
    """Give one row per model: what a message costs, where it switches, how well it predicts."""

    def error(predictor: str) -> Fill:
        def fill(card: Finding) -> Value:
            found = prediction_of(findings, card, predictor)
            return Value("not predicted") if found is None else estimate("median")(found)

        return fill

    columns = (
        _WHO,
        number("smallest", estimate("smallest"), "time of the smallest message, one way, by the model"),
        number(
            "bandwidth", estimate("bandwidth"), "one over what one more byte of the largest message costs"
        ),
        text(
            "switches",
            linked(word("switch_text", "none")),
            "where something switches, as far as it is certain",
            unit="bytes",
        ),
        number("error", error("model"), "median error of predicting the held-out replication"),
        number(
            "two numbers",
            error(MEASURED_ENDS),
            "the same error of latency + size / bandwidth, measured at either end",
            in_terminal=False,
        ),
        number("replications", fact("replications"), "launches the model is fitted to", in_terminal=False),
        number("round trips", fact("round_trips"), "behind the curve of delays", in_terminal=False),
    )
    return TableSpec("models", "Model cards", columns, is_key=True).build(findings.of("model"))


PAIRS: Final = TableSpec(
    "pairs",
    "Pairs of nodes",
    (
        _WHO,
        text("nodes", word("nodes")),
        text("ranks started by", word("started_by")),
        text("between them", lambda each: Value(each.verdict)),
        number("launches", fact("launches"), "that left a trace"),
    ),
)


def _slope(finding: Finding) -> Value:
    if finding.verdict == "constant":
        return Value("")
    return (estimate("slope") if finding.verdict == "line" else _plain("slope"))(finding)


def _error(role: str) -> Fill:
    """Fill with the standard error of a coefficient."""

    def fill(finding: Finding) -> Value:
        error = _number(finding.facts[f"{role}_error"])
        if error is None or (role == "slope" and finding.verdict == "constant"):
            return Value("") if finding.verdict == "constant" else NOTHING
        unit = finding.estimates[role].unit
        said = f"{error:.2g}" if unit == "exponent" else with_unit(error, unit)
        return Value(said, error, finding=finding.id)

    return fill


COEFFICIENTS: Final = TableSpec(
    "coefficients",
    "Pieces of the curves",
    (
        _WHO,
        text("curve", word("curve_text")),
        _SIZES,
        text("kind", lambda each: Value(each.verdict)),
        number("base", estimate("base"), "level, intercept, or factor of a power law"),
        number("se base", _error("base"), "standard error of the base"),
        number("slope", _slope, "per byte; the exponent of a power law"),
        number("se slope", _error("slope"), "standard error of the slope"),
        number("rate", estimate("rate"), "one over the slope"),
        number("operations", fact("operations")),
    ),
    summary=lambda rows: f"{len(rows)} pieces, each with its standard errors",
)


def _at(finding: Finding) -> Value:
    at = finding.estimates["at"]
    return Value(f"{at.value:.0f}", at.value, finding=finding.id)


def _at_limits(finding: Finding) -> Value:
    at = finding.estimates["at"]
    return Value(f"{at.low:.0f} to {at.high:.0f}")


def _recurrence(finding: Finding) -> Value:
    percent = finding.facts["recurrence_percent"]
    return Value(f"{percent:.0f} %", _number(percent))


def _mixed(finding: Finding) -> Value:
    low, high = finding.facts["mixed_low_bytes"], finding.facts["mixed_high_bytes"]
    if low is None or high is None:
        return Value("")
    return Value(f"{low:.0f} to {high:.0f} B ({finding.facts['mixed_operations']} messages)")


BOUNDARIES: Final = TableSpec(
    "boundaries",
    "Boundaries of the curve of delays",
    (
        _WHO,
        number("at", _at, unit="bytes"),
        text("95 % interval", _at_limits, unit="bytes"),
        text(
            "kind",
            lambda each: Value("switch" if each.verdict == "protocol" else "bend"),
            "a switch is at a measured limit, or has a step that recurs or is declared",
        ),
        number("found again", _recurrence, "part of the resamples with a boundary there"),
        number("step", _plain("step"), "cost right of it over cost left of it", unit="ratio"),
        text("known as", word("declared"), "limit that was measured, or is declared, there"),
        text("both ways", _mixed, "sizes at which messages follow either side"),
    ),
)


def boundary_table(findings: FindingSet) -> Table | None:
    """Give where curves change, switches first."""
    return BOUNDARIES.build(sorted(findings.of("boundary"), key=lambda each: each.verdict != "protocol"))


def _up_to(finding: Finding) -> Value:
    least = "at least " if finding.verdict == "at least" else ""
    return Value(f"{least}{finding.facts['bytes']}", finding.estimates["size"].value, finding=finding.id)


THRESHOLDS: Final = TableSpec(
    "thresholds",
    "Up to which size sends return early",
    (
        _WHO,
        _KIND,
        number("up to", _up_to, unit="bytes"),
        prose("meaning", word("text")),
        prose("declared by the library", word("declared")),
    ),
)

NOISE: Final = TableSpec(
    "noise",
    "Noise: measured over the model",
    (
        _WHO,
        _SIZES,
        *(
            number(quantile, _plain(quantile), "quantile of measured over model", unit="ratio")
            for quantile in ("p5", "p50", "p95", "p99")
        ),
        number("tail", _plain("tail_index"), "Hill's index of the largest 2 %; smaller is heavier"),
        prose("law", word("law")),
    ),
)

PREDICTIONS: Final = TableSpec(
    "prediction_errors",
    "Errors of predicting the held-out replication",
    (
        _WHO,
        text("of", word("response_text")),
        _PREDICTOR,
        number("median", estimate("median")),
        number("mean", estimate("mean")),
        number("p90", estimate("p90"), "nine of ten bins are predicted better"),
        number("floor", estimate("floor"), "median error that the medians measured have themselves"),
        number("bins", fact("bins"), "of 50 round trips of neighbouring sizes"),
    ),
)

NOISE_DISTANCES: Final = TableSpec(
    "noise_distances",
    "Simulated noise against measured noise",
    (
        _WHO,
        _SIZES,
        number("distance", _plain("distance"), "Kolmogorov-Smirnov; 0 is alike, 1 is apart"),
        number("without noise", _plain("without_noise"), "the same for the curve alone"),
        number("p50", _plain("p50"), "simulated over measured median", unit="ratio"),
        text("95 % of p50", limits("p50")),
        number("p95", _plain("p95"), "the same for the 95 % quantile", unit="ratio"),
        text("95 % of p95", limits("p95")),
        number("p99", _plain("p99"), "the same for the 99 % quantile", unit="ratio"),
        text(
            "95 % of p99",
            limits("p99"),
            "from 0: too few messages for an upper limit of the measured one",
        ),
        text(
            "verdict",
            linked(lambda each: Value(each.verdict)),
            "all intervals lie within 0.9 to 1.1, or one lies wholly beyond",
        ),
    ),
)

CROSSED_PREDICTIONS: Final = TableSpec(
    "crossed_predictions",
    "The same within the replications of the models: each predicted from the others",
    (_WHO, _PREDICTOR, *(number(role, estimate(role)) for role in ("median", "mean", "p90"))),
)


def _messages(finding: Finding) -> Value:
    found = finding.estimates["ratio"].measurements
    return Value(str(found), float(found))


CARRY_OVER: Final = TableSpec(
    "carry_over_by_previous_size",
    "Effect of the message before",
    (
        _WHO,
        _SIZES,
        number("after", _in_order_of("after_low_bytes", "after"), "size of the message before"),
        number("measured / model", _plain("ratio")),
        text("95 % interval", limits("ratio")),
        number("messages", _messages),
    ),
    summary=lambda rows: f"{len(rows)} classes of size and size before",
)

CALLS: Final = TableSpec(
    "calls",
    "Calls without a message",
    (
        _WHO,
        text("call", word("text")),
        number("cost", estimate("cost")),
        text("95 % interval", limits("cost")),
        prose("remark", word("reason")),
    ),
)


def _offset(finding: Finding) -> Value:
    return Value(finding.verdict, 0.0) if finding.verdict == "one clock" else estimate("error")(finding)


CLOCKS: Final = TableSpec(
    "clocks",
    "Clocks of the endpoints",
    (
        _WHO,
        number("replication", linked(subject_number("replication"))),
        number("error of the offset", _offset, "half of the narrowest bounds"),
        number("drift", _plain("drift"), unit="ppb"),
        number(
            "residual",
            estimate("residual"),
            "largest distance of a group of probes from the line; of one clock: from 0",
        ),
        number("stamp", fact("stamp_cost_ns"), "cost of one stamp", unit="ns"),
        number("withheld", fact("withheld"), "one-way times too short to be given"),
    ),
    summary=lambda _: "one row per replication",
)
