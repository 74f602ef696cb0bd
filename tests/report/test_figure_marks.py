"""Every chart as it is drawn: marks lie inside the frame, and labels beside each other, whatever the data."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import unicodedata
from typing import Any

import pytest

from fixtures.drawn_charts import CHARTS, SHAPES, Data, drawn, figure_of, labels_that_meet, marks_outside
from steelyard.report import charts
from steelyard.report.charts.parts import FIGURE_WIDTH, LETTER_WIDTH, ROW_NAMES, letters_of
from steelyard.report.drawing.figures import file_spec


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("chart", CHARTS)
def test_every_mark_lies_inside_its_frame_and_no_labels_meet(chart: str, shape: str) -> None:
    scene = drawn(file_spec(figure_of(chart, SHAPES[shape])))
    assert marks_outside(scene) == []
    assert labels_that_meet(scene) == []


def test_no_chart_is_left_out() -> None:
    modules = [
        importlib.import_module(f"{charts.__name__}.{each.name}")
        for each in pkgutil.iter_modules(charts.__path__)
        if not each.name.startswith("test_")
    ]
    drawing = {
        name
        for module in modules
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__ and "Reads the dataset" in (function.__doc__ or "")
    }
    covered = {name for make in CHARTS.values() for name in make.__code__.co_names}
    assert drawing - covered == set()


@pytest.mark.parametrize("shape", ["one is slow", "huge range"])
@pytest.mark.parametrize("chart", ["boxes", "runs", "shares", "levels", "scatter"])
def test_one_slow_contender_leaves_room_for_the_others(chart: str, shape: str) -> None:
    """Of values at 1, 1.1 and 90, the first two are apart on the page."""
    data = SHAPES[shape]
    spec = file_spec(figure_of(chart, data))
    assert '"type": "log"' in str(spec).replace("'", '"')
    assert tick_labels(drawn(spec)) >= 3


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("chart", ["boxes", "runs", "scatter", "price", "tail", "policies", "curves"])
def test_a_value_axis_has_ticks(chart: str, shape: str) -> None:
    values = SHAPES[shape].values
    assert tick_labels(drawn(file_spec(figure_of(chart, SHAPES[shape])))) >= (
        2 if len(set(values)) > 1 else 1
    )


def test_the_clocks_differ_by_what_an_axis_says() -> None:
    """A difference of 6 ms lies far from the ticks 0 and 1."""
    spec = file_spec(figure_of("clock_pairs", Data(("bare", "vm"), (6.0, 6.5, 7.0))))
    assert tick_labels(drawn(spec)) >= 4


@pytest.mark.parametrize("letter", ["e\u0301", "快", "W"])
def test_a_name_is_broken_between_letters_and_loses_its_middle_alone(letter: str) -> None:
    """An accent belongs to its letter; a letter of an ideographic script is as wide as two."""
    spec: dict[str, Any] = file_spec(
        figure_of("costs", Data((f"first {letter * 80} last", "plain"), (3.0, 4.0)))
    )
    lines = next(text for text in label_lines(drawn(spec)) if "first" in text[0])
    assert not any(unicodedata.combining(line[0]) for line in lines)
    assert lines[-1].endswith("last")
    (width,) = (each["value"] for each in spec["params"] if each["name"] == FIGURE_WIDTH)
    assert max(map(letters_of, lines)) <= ROW_NAMES * width / LETTER_WIDTH


def label_lines(scene: dict[str, Any]) -> list[list[str]]:
    """Give the lines of each label of the vertical axes."""
    labels = [
        item["text"]
        for axis in axes(scene["scenegraph"])
        for mark in axis["items"][0]["items"]
        if mark.get("role") == "axis-label" and axis["items"][0].get("orient") == "left"
        for item in mark["items"]
    ]
    return [label if isinstance(label, list) else [label] for label in labels]


def tick_labels(scene: dict[str, Any]) -> int:
    """Count the labels of the vertical axis that has the fewest."""
    counts = [
        sum(1 for item in mark["items"] if item.get("opacity", 1) > 0 and item.get("text"))
        for axis in axes(scene["scenegraph"])
        for mark in axis["items"][0]["items"]
        if mark.get("role") == "axis-label" and axis["items"][0].get("orient") == "left"
    ]
    return min(counts)


def axes(mark: dict[str, Any]) -> list[dict[str, Any]]:
    found = [mark] if mark.get("role") == "axis" else []
    for item in mark.get("items", ()):
        for inner in item.get("items", ()):
            found += axes(inner)
    return found
