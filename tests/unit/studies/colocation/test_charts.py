"""Charts of the colocation study, as they are drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fixtures.drawn_charts import drawn
from steelyard.report.dataset import dataset
from steelyard.report.drawing.figures import file_spec
from steelyard.report.page import Figure
from steelyard.studies.colocation.report.charts import STRETCHES, tails

if TYPE_CHECKING:
    from collections.abc import Iterator

COLOURS = {"none": "#0072b2", "idle": "#d55e00", "quota": "#009e73"}


def items(mark: dict[str, Any], kind: str) -> Iterator[dict[str, Any]]:
    if mark.get("marktype") == kind:
        yield from mark.get("items", [])
    for each in mark.get("items", []):
        yield from items(each, kind)


def test_the_tails_of_policies_are_told_apart_without_colour() -> None:
    rows: list[dict[str, str | int | float | bool | None]] = [
        {
            "policy": policy,
            "load": "50 %",
            "stretch": stretch,
            "share_percent": share,
            "latency_ms": (1 + at) / share,
        }
        for at, policy in enumerate(COLOURS)
        for stretch in STRETCHES
        for share in (50, 10, 1, 0.1)
    ]
    spec = tails(COLOURS, ["50 %"])
    scene = drawn(file_spec(Figure("tail", "Tails", "", "", spec, {"tails": dataset(rows)})))
    shapes: dict[str, set[str]] = {}
    for point in items(scene["scenegraph"], "symbol"):
        if point.get("size") == 45:
            shapes.setdefault(point["fill"], set()).add(point["shape"])
    strokes = [each for each in items(scene["scenegraph"], "symbol") if each.get("shape") == "stroke"]
    assert all(each["stroke"] != "transparent" for each in strokes)
    assert len(strokes) == len({str(each.get("strokeDash")) for each in strokes}) == len(STRETCHES)
    assert len(shapes) == len(COLOURS)
    assert len(set.union(*shapes.values())) == len(COLOURS)
