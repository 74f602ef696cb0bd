"""What the source of this study printed, and what follows from it by computation.

References
----------
.. [1] Knoche & Eichelberger (2018), Using the Raspberry Pi and Docker for Replicable Performance Experiments,
   ICPE, slides "Experimental Results" and "Fluctuation Cause Analysis". All numbers below are printed there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from steelyard.analyse.comparison.equivalence import Margin
from steelyard.analyse.intervals.printed_interval import compare_printed, printed_interval
from steelyard.model import Estimate
from steelyard.report.slots import signed_change
from steelyard.studies.analysis_parts import finding
from steelyard.units import format_significant

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from steelyard.model import Finding

SOURCE_MARGIN: Final = Margin(0.05, 0.95)
"""That of the study, so that both are judged alike."""

NATIVE: Final = "native"
DOCKER: Final = "Docker"
E1_LEVEL: Final = 0.999
LEVEL: Final = 0.95

_ROLES: Final = "Web D2, DB D3"
_SWAPPED: Final = "Web D3, DB D2"

PRINTED: Final[dict[tuple[str, str], tuple[float, dict[str, tuple[str, str]]]]] = {
    ("E1", "method invocation"): (
        E1_LEVEL,
        {
            "D2 native": ("12,314,426", "12,329,982"),
            "D3 native": ("12,307,645", "12,320,718"),
            "D2 Docker": ("12,290,439", "12,308,655"),
        },
    ),
    ("E1", "file I/O"): (
        E1_LEVEL,
        {
            "D2 native": ("541,361", "566,493"),
            "D3 native": ("536,530", "561,079"),
            "D2 Docker": ("852,325", "912,492"),
        },
    ),
    ("E1", "network I/O"): (
        E1_LEVEL,
        {
            "D2 native": ("192,311", "199,128"),
            "D3 native": ("192,632", "198,823"),
            "D2 Docker": ("184,944", "192,154"),
        },
    ),
    ("E2", "SPASS"): (
        LEVEL,
        {
            "D1 native": ("153.5", "153.5"),
            "D2 native": ("145.0", "145.0"),
            "D3 native": ("151.6", "151.7"),
            "D1 Docker": ("152.0", "152.0"),
            "D2 Docker": ("147.6", "147.8"),
            "D3 Docker": ("155.0", "155.4"),
        },
    ),
    ("E2", "Kieker"): (
        LEVEL,
        {
            "D1 native": ("118.8", "124.3"),
            "D2 native": ("113.6", "118.3"),
            "D3 native": ("116.2", "121.1"),
            "D1 Docker": ("128.7", "134.2"),
            "D2 Docker": ("120.8", "125.8"),
            "D3 Docker": ("118.2", "122.8"),
        },
    ),
    ("E3", "update"): (
        LEVEL,
        {
            f"{_ROLES} native": ("354,663", "357,726"),
            f"{_SWAPPED} native": ("352,361", "355,460"),
            f"{_ROLES} Docker": ("353,324", "356,351"),
            f"{_SWAPPED} Docker": ("379,799", "382,993"),
            f"{_ROLES} native, storages swapped": ("549,424", "553,402"),
        },
    ),
    ("E4", "create vehicle (EJB)"): (
        LEVEL,
        {
            f"{_ROLES} native": ("0.228", "0.242"),
            f"{_SWAPPED} native": ("0.256", "0.275"),
            f"{_ROLES} Docker": ("0.236", "0.251"),
        },
    ),
    ("E4", "create vehicle (WS)"): (
        LEVEL,
        {
            f"{_ROLES} native": ("0.411", "0.484"),
            f"{_SWAPPED} native": ("0.807", "1.012"),
            f"{_ROLES} Docker": ("0.641", "0.795"),
        },
    ),
}
"""Level and intervals by setting, of each experiment; E2 is in us, E3 in us, E4 in s, E1 a throughput."""


@dataclass(frozen=True, slots=True)
class PrintedRow:
    """A row of the source's table of causes, in us; its peaks are counts."""

    intervention: str
    mean: float
    sigma: float
    low: float
    high: float
    peaks: int


CAUSE_ROWS: Final = (
    PrintedRow("from SSP'18", 164.8, 44.1, 91.9, 19_228.7, 1155),
    PrintedRow("object pools", 152.3, 142.5, 89.8, 370_604.0, 818),
    PrintedRow("parallel GC", 194.4, 56.7, 110.1, 27_715.9, 6901),
    PrintedRow("time measurement", 146.3, 34.9, 88.5, 13_034.8, 406),
    PrintedRow("one CPU core", 492.8, 427.1, 86.0, 13_560.1, 37_360),
    PrintedRow("no recursion", 17.6, 1.8, 11.35, 3_361.3, 53),
)


@dataclass(frozen=True, slots=True)
class PrintedStatement:
    """A multiple of the mean that the source states, and how far its digits allow another one."""

    name: str
    role: str
    stated: float
    half_unit: float


STATEMENTS: Final = (
    PrintedStatement("sigma = 3 mu", "cv", 3.0, 0.5),
    PrintedStatement("max = 125 mu", "max_over_mean", 125.0, 0.5),
)
"""SOURCE: slide "SPASS-meter Results Revisited", about the raw data of SPASS-meter."""


def comparisons() -> Iterator[Finding]:
    """Judge what the source printed: in each experiment its first setting against the others."""
    for (experiment, what), (level, rows) in PRINTED.items():
        names = list(rows)
        for first, second in _pairs(names):
            one, other = (printed_interval(*rows[name], level) for name in (first, second))
            found = compare_printed(one, other, SOURCE_MARGIN)
            yield finding(
                "source_comparison",
                {"experiment": experiment, "what": what, "first": first, "second": second},
                found.verdict,
                estimates={"ratio": found.ratio},
                facts={"relation": found.relation.value, "margin_percent": 100 * SOURCE_MARGIN.relative},
            )


def _pairs(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Give pairs that differ in one thing: a container against the same place, another place natively."""
    for other in names[1:]:
        is_contained = other.endswith(DOCKER)
        yield (other.replace(DOCKER, NATIVE) if is_contained else names[0]), other


def rows() -> Iterator[Finding]:
    """Give what the printed rows of the cause tree say: spread and largest value over the mean."""
    for row in CAUSE_ROWS:
        yield finding(
            "source_row",
            {"intervention": row.intervention},
            "as printed",
            estimates={
                "cv": _printed(row.sigma / row.mean),
                "max_over_mean": _printed(row.high / row.mean),
                "mean_over_sigma": _printed(row.mean / row.sigma),
            },
            facts={
                "mean_us": row.mean,
                "sigma_us": row.sigma,
                "min_us": row.low,
                "max_us": row.high,
                "peaks": row.peaks,
            },
        )


def statements() -> Iterator[Finding]:
    """Check each multiple of the mean that the source states against the printed rows."""
    found = list(rows())
    for statement in STATEMENTS:
        values = {each.subject["intervention"]: each.estimates[statement.role].value for each in found}
        known = {name: value for name, value in values.items() if value is not None}
        follows = [name for name, value in known.items() if _agrees(value, statement)]
        nearest = min(known, key=lambda name: abs(known[name] - statement.stated))
        yield finding(
            "source_statement",
            {"statement": statement.name},
            "follows from a row" if follows else "does not follow from the rows",
            estimates={
                "nearest": _printed(known[nearest]),
                "smallest": _printed(min(known.values())),
                "largest": _printed(max(known.values())),
            },
            facts={
                "stated": statement.stated,
                "rows": ", ".join(follows),
                "nearest_row": nearest,
            },
        )


def _agrees(value: float, statement: PrintedStatement) -> bool:
    return abs(value - statement.stated) <= statement.half_unit


def _printed(value: float) -> Estimate:
    return Estimate(value, "ratio", "quotient of two printed numbers", units=0, guaranteed=False)


def source_findings() -> Iterator[Finding]:
    """Give everything that is said of the source."""
    yield from comparisons()
    yield from rows()
    yield from statements()


def markdown() -> str:
    """Give the tables of ``docs/studies/replication.md``, computed from the printed numbers.

    Examples
    --------
    >>> print(markdown().splitlines()[5])
    | E1 | file I/O | D2 native | D2 Docker | higher | +59.3 % | different |
    """
    lines = [
        "| | what | first | second | relation | difference | within 5 % |",
        "|---|---|---|---|---|---|---|",
    ]
    for each in comparisons():
        ratio = each.estimates["ratio"].value
        cells = [*each.subject.values(), each.facts["relation"]]
        change = "" if ratio is None else signed_change(ratio)
        lines.append("| " + " | ".join([*map(str, cells), change, each.verdict]) + " |")
    lines += [
        "",
        "| intervention | mean us | sigma us | max us | peaks | sigma / mean | max / mean |",
        "|---|---|---|---|---|---|---|",
    ]
    for each in rows():
        facts = [each.subject["intervention"], *(f"{each.facts[name]:g}" for name in _FACTS)]
        quotients = [_digits(each.estimates[role].value) for role in ("cv", "max_over_mean")]
        lines.append("| " + " | ".join([*facts, *quotients]) + " |")
    lines += [
        "",
        "| statement | verdict | nearest row | there | smallest | largest |",
        "|---|---|---|---|---|---|",
    ]
    for each in statements():
        numbers = [each.estimates[role].value for role in ("nearest", "smallest", "largest")]
        shown = [each.subject["statement"], each.verdict, str(each.facts["nearest_row"])]
        lines.append("| " + " | ".join([*shown, *(_digits(float(number or 0)) for number in numbers)]) + " |")
    return "\n".join(lines) + "\n"


_FACTS: Final = ("mean_us", "sigma_us", "max_us", "peaks")


def _digits(value: float | None) -> str:
    return "" if value is None else format_significant(value, 3)
