"""What a cell measured: read from the recorded tables when somebody asks, its own rows alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from steelyard.analyse.column_quantiles import column_quantiles, column_shape
from steelyard.catalogue.folder import OF_RUNS
from steelyard.errors import DataError
from steelyard.record.cell_rows import CellRows
from steelyard.record.schema import KNOWN_COLUMNS
from steelyard.record.tables import RUNS_NAME
from steelyard.report.charts.parts import SCHEMA, WHOLE_NUMBERS, numeric, tip
from steelyard.report.charts.theme import HIGHLIGHT
from steelyard.report.dataset import dataset
from steelyard.report.page import Figure
from steelyard.serve.result_folder import require_contained
from steelyard.units import format_bytes, format_seconds, format_significant, seconds_per

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from steelyard.analyse.column_quantiles import Column, ColumnQuantiles, ColumnShape
    from steelyard.report.dataset import Json, Scalar

CELLS: Final = 50
"""Cells on a page."""
MOST_DRAWN: Final = 4000
"""Points drawn one by one: more than a chart has pixels side by side is an envelope as well."""
COLUMNS: Final = 600
MOST_BINS: Final = 60
SHOWN_VALUES: Final = 100
MOST_WRITTEN: Final = 1_000_000
_SCALES: Final[tuple[dict[str, float], ...]] = (
    {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9},
    {"bytes": 1.0, "KiB": 1024.0, "MiB": 1024.0**2, "GiB": 1024.0**3},
)
"""Units that can be changed into each other, ascending, by their size."""
_TABLES_HINT: Final = "`steelyard analyse` writes the tables again where there is a ledger"
_TAIL: Final = 0.999
"""Quantile at which a histogram ends: one call in a thousand may take a hundred times as long."""
_SUMMARY: Final = {
    "minimum": 0.0,
    "5 %": 0.05,
    "median": 0.5,
    "95 %": 0.95,
    "99 %": 0.99,
    "maximum": 1.0,
}
_OF_HISTOGRAM: Final = (0.25, 0.75, _TAIL)
_FEWEST_BINS: Final = 8
_WRITTEN: Final = ("run_id", "iteration", "metric", "value", "unit")


@dataclass(frozen=True, slots=True)
class _Drawn:
    """Values that are drawn: `factor` changes them into the unit of the title."""

    shape: ColumnShape
    count: int
    factor: float
    metric: str
    title: str


@dataclass(frozen=True, slots=True)
class CellRow:
    """A cell in the list of cells."""

    number: int
    levels: tuple[str, ...]
    runs: int
    failed: int


@dataclass(frozen=True, slots=True)
class CellList:
    """Cells of a result, a page of them.

    Parameters
    ----------
    factors : tuple of str
        Headings of their levels.
    rows : tuple of CellRow
        In the order of the plan.
    total : int
        How many fulfil the filter.
    """

    factors: tuple[str, ...]
    rows: tuple[CellRow, ...]
    total: int


@dataclass(frozen=True, slots=True)
class CellValues:
    """What one cell measured of one metric.

    Parameters
    ----------
    name : str
        Its levels.
    metrics : tuple of str
        What it measured.
    metric, unit : str
        What is shown.
    count : int
        Values of the phase ``measure``.
    summary : tuple of (str, str)
        Quantiles, by name.
    first : tuple of (str, int, str)
        The first values as recorded: run, iteration, value.
    figures : tuple of Figure
        Histogram, and order of time.
    """

    name: str
    metrics: tuple[str, ...]
    metric: str
    unit: str
    count: int
    summary: tuple[tuple[str, str], ...]
    first: tuple[tuple[str, int, str], ...]
    figures: tuple[Figure, ...]


def cell_list(folder: Path, text: str, page: int) -> CellList:
    """Give a page of the cells that have runs.

    Parameters
    ----------
    folder : Path
        Result folder.
    text : str
        Words that the levels must contain.
    page : int
        From 1.

    Raises
    ------
    DataError
        If the runs are absent or damaged.
    """
    runs, factors = _runs(folder)
    levels = pl.concat_str([pl.col(name) for name in factors], separator=" ") if factors else pl.lit("")
    failed = (pl.col("status") != "completed").sum().alias("failed")
    cells = runs.group_by("cell").agg(
        *(pl.col(name).first() for name in factors), pl.len().alias("runs"), failed
    )
    for word in text.casefold().split():
        cells = cells.filter(levels.str.to_lowercase().str.contains(word, literal=True))
    found = _collected(cells.sort("cell"), folder)
    rows = found.slice((max(page, 1) - 1) * CELLS, CELLS)
    return CellList(
        factors,
        tuple(
            CellRow(row["cell"], tuple(str(row[name]) for name in factors), row["runs"], row["failed"])
            for row in rows.iter_rows(named=True)
        ),
        found.height,
    )


def cell_values(folder: Path, cell: int, metric: str) -> CellValues:
    """Give what a cell measured.

    Parameters
    ----------
    folder : Path
        Result folder.
    cell : int
        Number of the cell.
    metric : str
        What to show; empty for the first.

    Raises
    ------
    DataError
        If there is no such cell or metric, or the tables are damaged.
    """
    runs, factors = _runs(folder)
    own = _collected(runs.filter(pl.col("cell") == cell).select("run_id", *factors), folder)
    if own.is_empty():
        message = f"cannot show cell {cell} of `{folder}`: it has no runs"
        raise DataError(message, hint="the list of cells shows those that have", code="data.cell")
    name = ", ".join(level for factor in factors if (level := str(own[factor][0])))
    measured = CellRows(folder, own["run_id"].to_list())
    metrics = tuple(measured.metrics)
    if metric and metric not in metrics:
        message = f"cannot show `{metric[:80]}`: cell {cell} measured {', '.join(metrics)[:400]}"
        raise DataError(message, hint="choose one of them", code="data.metric")
    chosen = metric or next((each for each in metrics if "wall" in each), next(iter(metrics), ""))
    unit = measured.metrics.get(chosen, "")

    def column() -> Iterator[NDArray[np.float64]]:
        return measured.values(chosen)

    if not any(values.size for values in column()):
        return CellValues(name, metrics, chosen, "", 0, (), (), ())
    found = column_quantiles(column, [*_SUMMARY.values(), *_OF_HISTOGRAM])
    return CellValues(
        name,
        metrics,
        chosen,
        unit,
        found.count,
        tuple((label, _with_unit(found.quantiles[p], unit)) for label, p in _SUMMARY.items()),
        tuple(_first_rows(measured, chosen, unit)),
        _figures(column, found, chosen, unit),
    )


def _first_rows(measured: CellRows, metric: str, unit: str) -> Iterator[tuple[str, int, str]]:
    left = SHOWN_VALUES
    for part in measured.rows(metric, ("run_id", "iteration", "value")):
        for row in part.slice(0, left).to_pylist():
            yield row["run_id"], row["iteration"], _with_unit(row["value"], unit)
        left -= min(left, len(part))
        if not left:
            return


def cell_csv(folder: Path, cell: int, metric: str, path: Path) -> None:
    """Write the recorded values of a cell as CSV, the first million of them.

    Parameters
    ----------
    folder : Path
        Result folder.
    cell : int
        Number of the cell.
    metric : str
        Which values; empty for all metrics.
    path : Path
        File to write.

    Raises
    ------
    DataError
        If the tables are absent or damaged.
    """
    runs, _ = _runs(folder)
    own = _collected(runs.filter(pl.col("cell") == cell).select("run_id"), folder)["run_id"]
    # A spreadsheet computes what begins like this.
    as_text = pl.col(pl.String).str.replace(r"^([=+\-@\t\r])", "'$1")
    left = MOST_WRITTEN
    with path.open("wb") as file:
        for part in CellRows(folder, own.to_list()).rows(metric, _WRITTEN):
            rows = pl.DataFrame(part.slice(0, left)).select(_WRITTEN).with_columns(as_text)
            rows.write_csv(file, include_header=left == MOST_WRITTEN)
            left -= rows.height
            if not left:
                break


def _runs(folder: Path) -> tuple[pl.LazyFrame, tuple[str, ...]]:
    require_contained(folder, OF_RUNS)
    try:
        runs = pl.scan_parquet(folder / RUNS_NAME, glob=False)
        names = runs.collect_schema().names()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise _damaged(folder / RUNS_NAME, error) from error
    lacking = {"run_id", "cell", "status"} - set(names)
    if lacking:
        message = f"`{folder / RUNS_NAME}` has no column `{min(lacking)}`"
        raise DataError(message, hint="restore the file from a copy", code="data.schema")
    return runs, tuple(name for name in names if name not in KNOWN_COLUMNS)


def _collected(frame: pl.LazyFrame, path: Path) -> pl.DataFrame:
    try:
        return frame.collect(engine="streaming")
    except (pl.exceptions.PolarsError, OSError) as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> DataError:
    reason = " ".join(str(error).split())[:200]
    return DataError(f"cannot read `{path}`: {reason}", hint=_TABLES_HINT, code="data.corrupt")


def _with_unit(value: float, unit: str) -> str:
    if unit in {"ns", "us", "ms", "s"}:
        return format_seconds(value * seconds_per(unit))
    return format_bytes(value) if unit == "bytes" else f"{format_significant(value, 5)} {unit}".strip()


def _figures(column: Column, found: ColumnQuantiles, metric: str, unit: str) -> tuple[Figure, ...]:
    """Draw values in the largest unit in which their median is at least 1."""
    middle, factor = abs(found.quantiles[0.5]), 1.0
    for scale in _SCALES:
        if unit in scale:
            larger = [name for name, size in scale.items() if middle * scale[unit] >= size]
            chosen = larger[-1] if larger else unit
            factor, unit = scale[unit] / scale[chosen], chosen
    # Where there are few values all are shown.
    last = found.quantiles[_TAIL] if found.count > 1 / (1 - _TAIL) else found.largest
    pieces = found.count if found.count <= MOST_DRAWN else COLUMNS
    shape = column_shape(column, _edges(found, last), found.count, pieces)
    drawn = _Drawn(shape, found.count, factor, metric, f"{metric} [{unit}]")
    beyond = found.count - int(shape.counts.sum())
    rest = f" {beyond} values above {format_significant(last * factor, 4)} {unit} are left out."
    return _histogram(drawn, rest if beyond else ""), _order(drawn)


def _edges(found: ColumnQuantiles, last: float) -> NDArray[np.float64]:
    """Give the edges of equally wide bins, or of one where they would not differ or not be finite."""
    reach, spread = last - found.smallest, found.quantiles[0.75] - found.quantiles[0.25]
    if reach == 0:
        return np.array([last - 0.5, last + 0.5])
    # SOURCE: the rule of Freedman and Diaconis (1981) for the width of a bin.
    wanted = reach / (2 * spread / found.count ** (1 / 3)) if spread > 0 and reach > 0 else 10
    with np.errstate(over="ignore", invalid="ignore"):
        edges = np.linspace(found.smallest, last, int(min(max(wanted, _FEWEST_BINS), MOST_BINS)) + 1)
    if np.isfinite(edges).all() and (np.diff(edges) > 0).all():
        return edges
    return np.array([found.smallest, last])


def _histogram(drawn: _Drawn, rest: str) -> Figure:
    edges = drawn.shape.edges * drawn.factor
    rows: list[dict[str, Scalar]] = [
        {"begin": float(edges[at]), "end": float(edges[at + 1]), "count": int(count)}
        for at, count in enumerate(drawn.shape.counts)
    ]
    spec: dict[str, Json] = {
        "$schema": SCHEMA,
        "data": {"name": "bins"},
        "height": 200,
        "mark": {"type": "rect", "stroke": None},
        "encoding": {
            "x": numeric("begin", drawn.title, "x", zero=False, padding=0),
            "x2": {"field": "end"},
            "y": {**numeric("count", "values", "y", padding=0), "axis": WHOLE_NUMBERS},
            "y2": {"datum": 0},
            "tooltip": [tip("begin", "from"), tip("end", "to"), tip("count", "values")],
        },
    }
    caption = f"How often each value occurs.{rest}"
    said = f"Histogram of {drawn.count} values of {drawn.metric}"
    return Figure("histogram", "Histogram", caption, said, spec, {"bins": dataset(rows)})


def _order(drawn: _Drawn) -> Figure:
    """Draw values in the order of time: one by one, or per column the least, the middle and the largest."""
    title, shape = drawn.title, drawn.shape
    place: dict[str, Json] = {
        **numeric("order", "value, in the order of time", "x", zero=False),
        "axis": WHOLE_NUMBERS,
    }
    low, middle, high = (drawn.factor * each for each in (shape.low, shape.middle, shape.high))
    if drawn.count <= MOST_DRAWN:
        rows: list[dict[str, Scalar]] = [
            {"order": at + 1, "value": float(value)} for at, value in enumerate(middle)
        ]
        layers: list[Json] = [
            {
                "mark": {"type": "point", "filled": True, "size": 18, "opacity": 0.8},
                "encoding": {"x": place, "y": numeric("value", title, "y", zero=False)},
            }
        ]
        caption = "Every value in the order in which it was measured."
    else:
        rows = [
            {"order": int(begin) + 1, "low": float(least), "middle": float(half), "high": float(most)}
            for begin, least, half, most in zip(shape.begin, low, middle, high, strict=True)
        ]
        shade: dict[str, Json] = {"y": numeric("low", title, "y", zero=False), "y2": {"field": "high"}}
        layers = [
            {
                "mark": {"type": "area"},
                "encoding": {"x": place, **shade},
            },
            {
                "mark": {"type": "line", "color": HIGHLIGHT, "strokeWidth": 1.2},
                "encoding": {"x": place, "y": numeric("middle", title, "y", zero=False)},
            },
        ]
        caption = (
            f"Smallest, median and largest of every {drawn.count // COLUMNS} values: nothing is left out."
        )
    spec: dict[str, Json] = {"$schema": SCHEMA, "data": {"name": "values"}, "height": 240, "layer": layers}
    said = f"{drawn.count} values of {drawn.metric} in the order of time"
    return Figure("order", "Order of time", caption, said, spec, {"values": dataset(rows)})
