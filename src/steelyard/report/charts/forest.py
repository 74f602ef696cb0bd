"""Estimates with their intervals, one row each: the chart that answers most questions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from steelyard.report.charts.parts import SCHEMA, coloured, named_rows, shaped, tip
from steelyard.report.charts.theme import MUTED
from steelyard.report.shown_text import distinct_labels

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from steelyard.model.finding import Estimate
    from steelyard.report.dataset import Json

ROW_HEIGHT: Final = 30
MOST_ROWS: Final = 30
"""Rows that a forest draws, the first; its table has all."""

Row: TypeAlias = "dict[str, str | int | float | bool | None]"

BAND: Final = "#009E73"
TONES: Final[Mapping[str, tuple[str, str]]] = {
    "good": ("#009E73", "circle"),
    "bad": ("#C93F12", "diamond"),
    "better": ("#0072B2", "triangle-down"),
    "plain": ("#0072B2", "circle"),
    "open": ("#6B7280", "cross"),
}
"""Colour and shape of what a verdict means, so that none is told by colour alone."""


def forest(
    rows: Sequence[Row], verdicts: Mapping[str, str], place: dict[str, Json], *, at: float | None = 0.0
) -> dict[str, Json]:
    """Give estimates with their intervals, a row each, over the band of what counts as no difference.

    Parameters
    ----------
    rows : sequence of dict
        The dataset, as `labelled_rows` gives it: its labels in order, and which intervals there are.
    verdicts : mapping
        What each verdict means, by a name of `TONES`; the legend has them in this order.
    place : dict
        Horizontal position of the field ``value``, as `parts.numeric` or `parts.difference` gives it.
    at : float or None
        Where an upright dashed line stands.

    Returns
    -------
    dict
        Reads the dataset ``intervals``: ``label, name, order, verdict, value, low, high, narrow_low,
        narrow_high, band_low, band_high``; what is missing is null. The narrow interval is a thick
        line, and a row without a value has no point.
    """
    drawn = rows[:MOST_ROWS]
    y = named_rows("label", [str(row["label"]) for row in drawn])
    colours = {verdict: TONES[tone][0] for verdict, tone in verdicts.items()}
    colour = coloured("verdict", colours, is_beside_names=True)
    shape = shaped("verdict", list(verdicts), is_beside_names=True)
    shape["scale"] = {"domain": list(verdicts), "range": [TONES[tone][1] for tone in verdicts.values()]}
    title = str(place["title"])

    def span(low: str, high: str) -> dict[str, Json]:
        return {"y": y, "x": place | {"field": low}, "x2": {"field": high}}

    def existing(field: str, layer: dict[str, Json]) -> list[Json]:
        if all(row[field] is None for row in drawn):
            return []
        return [{"transform": [{"filter": f"isValid(datum.{field})"}], **layer}]

    line: dict[str, Json] = {
        "data": {"values": [{"at": at}]},
        "mark": {"type": "rule", "color": MUTED, "strokeDash": [4, 4]},
        "encoding": {"x": place | {"field": "at"}},
    }
    bands: dict[str, Json] = {
        "mark": {"type": "bar", "height": {"band": 1}, "color": BAND, "opacity": 0.14, "cornerRadius": 0},
        "encoding": span("band_low", "band_high"),
    }
    intervals: dict[str, Json] = {
        "mark": {"type": "rule", "strokeWidth": 2},
        "encoding": span("low", "high") | {"color": colour},
    }
    narrow: dict[str, Json] = {
        "mark": {"type": "rule", "strokeWidth": 6, "opacity": 0.45},
        "encoding": span("narrow_low", "narrow_high") | {"color": colour},
    }
    points: dict[str, Json] = {
        "mark": {"type": "point", "filled": True, "size": 80, "opacity": 1},
        "encoding": {
            "y": y,
            "x": place,
            "color": colour,
            "shape": shape,
            "tooltip": [
                tip("name", "name"),
                tip("value", title, ".4~g"),
                tip("low", "low", ".4~g"),
                tip("high", "high", ".4~g"),
                tip("verdict", "verdict"),
            ],
        },
    }
    layers = [
        *existing("band_low", bands),
        *([] if at is None else [line]),
        *existing("low", intervals),
        *existing("narrow_low", narrow),
        *existing("value", points),
    ]
    return {
        "$schema": SCHEMA,
        "data": {"name": "intervals"},
        "transform": [{"filter": f"datum.order < {MOST_ROWS}"}],
        "height": ROW_HEIGHT * len(drawn) + 10,
        "width": 820,
        "layer": [*layers],
    }


def forest_row(
    name: str,
    verdict: str,
    value: float | None,
    interval: tuple[float | None, float | None] = (None, None),
    *,
    narrow: tuple[float | None, float | None] = (None, None),
    band: tuple[float | None, float | None] = (None, None),
) -> Row:
    """Give a row of the dataset of a forest; an interval without one of its ends is none."""
    ends: Row = {}
    for key, (low, high) in (("", interval), ("narrow_", narrow), ("band_", band)):
        is_whole = low is not None and high is not None
        ends |= {f"{key}low": low if is_whole else None, f"{key}high": high if is_whole else None}
    return {"label": name, "name": name, "verdict": verdict, "value": value, **ends}


def labelled_rows(rows: Sequence[Row]) -> list[Row]:
    """Give rows whose labels are short and differ; their names stay whole."""
    labels = distinct_labels([str(row["name"]) for row in rows])
    pairs = enumerate(zip(rows, labels, strict=True))
    return [{**row, "label": label, "order": order} for order, (row, label) in pairs]


def found_tones(tones: Mapping[str, str], rows: Sequence[Row]) -> dict[str, str]:
    """Give the tones of the verdicts that rows have; one that is not known decides nothing."""
    found = {str(row["verdict"]) for row in rows}
    known = {verdict: tone for verdict, tone in tones.items() if verdict in found}
    return known | dict.fromkeys(sorted(found - known.keys()), "open")


def more_rows(count: int) -> str:
    """Say in a caption how many rows a forest leaves to its table."""
    return f" {count - MOST_ROWS} more are in the table." if count > MOST_ROWS else ""


def as_percent(ratio: float | None) -> float | None:
    """Give a ratio as a difference from one [percent]."""
    return None if ratio is None else 100 * (ratio - 1)


def percents(ratio: Estimate) -> tuple[float | None, float | None]:
    """Give the limits of a ratio as differences from one [percent]."""
    return as_percent(ratio.low), as_percent(ratio.high)
