from __future__ import annotations

from typing import Any

import pytest

from steelyard.report.charts.dispersion import dispersion_by_load
from steelyard.report.charts.forest import MOST_ROWS, forest, forest_row, labelled_rows
from steelyard.report.charts.parts import coloured, difference, fitting_scale, log_note, ring, shaped
from steelyard.report.charts.theme import assign_colours


@pytest.mark.parametrize(
    ("views", "scale"),
    [
        ([[1.0, 100.0]], "log"),
        ([[0.5, None, 600.0]], "log"),
        ([[40.0, 80.0]], None),
        ([[0.0, 900.0]], None),
        ([], None),
        # Nothing is squeezed by what is never seen beside it.
        ([[1.0, 1.1], [1000.0, 1010.0]], None),
        ([[1.0, 1.1], [1000.0, 90_000.0]], "log"),
        # An axis has one type for all choices: nothing at zero may vanish.
        ([[0.0, 1.1], [1000.0, 90_000.0]], None),
    ],
)
def test_an_axis_is_logarithmic_where_one_level_would_squeeze_the_others_and_the_caption_says_so(
    views: list[list[float | None]], scale: str | None
) -> None:
    assert fitting_scale(views, zero=False).get("type") == scale
    assert ("logarithmic" in log_note(views)) is (scale == "log")


def test_rings_stand_only_around_what_stands_apart() -> None:
    layer: dict[str, Any] = ring({"y": {"field": "value"}}, [{"filter": "datum.workload === chosen"}])
    assert [one["filter"] for one in layer["transform"]] == ["datum.workload === chosen", "datum.is_apart"]
    assert layer["mark"]["filled"] is False


def test_names_of_equal_colour_have_other_shapes() -> None:
    names = [f"contender {at}" for at in range(60)]
    colours: Any = coloured("name", assign_colours(names, {}))
    shapes: Any = shaped("name", names)
    looks = list(zip(colours["scale"]["range"], shapes["scale"]["range"], strict=True))
    assert len(set(looks)) == len(names)


def layers(spec: dict[str, Any]) -> list[dict[str, Any]]:
    return list(spec["layer"])


def test_a_tolerance_is_drawn_across_the_dispersion() -> None:
    with_line: dict[str, Any] = dispersion_by_load({"bare": "#000"}, ["w"], "cv [%]", 5.0)
    without: dict[str, Any] = dispersion_by_load({"bare": "#000"}, ["w"], "cv [%]")
    assert layers(with_line)[0]["data"] == {"values": [{"tolerance": 5.0}]}
    assert len(layers(with_line)) == len(layers(without)) + 1


def test_shifts_of_very_different_size_share_an_axis_that_shows_both() -> None:
    rows = labelled_rows([forest_row("vm", "slower", 3.0)])
    wide: dict[str, Any] = forest(rows, {"slower": "bad"}, difference("value", "change [%]", 1.0))
    assert layers(wide)[-1]["encoding"]["x"]["scale"]["type"] == "symlog"
    plain: dict[str, Any] = forest(rows, {"slower": "bad"}, difference("value", "change [%]", None))
    assert "type" not in layers(plain)[-1]["encoding"]["x"]["scale"]


def test_a_forest_draws_what_there_is_and_no_more_rows_than_a_page_bears() -> None:
    rows = labelled_rows([forest_row(f"cell {at}", "open", 1.0, (0.5, None)) for at in range(200)])
    spec: dict[str, Any] = forest(rows, {"open": "open"}, difference("value", "change [%]", None))
    assert [one["mark"]["type"] for one in layers(spec)] == ["rule", "point"]
    assert len(layers(spec)[-1]["encoding"]["y"]["sort"]) == MOST_ROWS
