"""Contrast and lightness, computed: what people with any sight, and copies without colour, can tell apart."""

from __future__ import annotations

import itertools
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from fixtures.drawn_charts import SHAPES, figure_of
from steelyard.report.charts.forest import TONES
from steelyard.report.charts.theme import (
    HIGHLIGHT,
    MUTED,
    NIGHT,
    PALETTE,
    PAPER,
    Theme,
    file_config,
    page_config,
    print_colours,
)
from steelyard.report.drawing.engine import drawn_svg
from steelyard.report.drawing.figures import with_data
from steelyard.report.drawing.paper import in_print
from steelyard.report.html import template_sources
from steelyard.studies.communication.report.charts import noise_quantiles
from steelyard.studies.comparison.report.charts import distributions

if TYPE_CHECKING:
    from collections.abc import Iterator

TEXT = 4.5
GRAPHICS = 3.0


def luminance(colour: str) -> float:
    """SOURCE: Web Content Accessibility Guidelines 2.2, relative luminance."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    darker, lighter = sorted((luminance(first), luminance(second)))
    return (lighter + 0.05) / (darker + 0.05)


BLACK = re.compile("""(?:fill|stroke)=.(?:black|#000|#000000)["']""")


@pytest.mark.parametrize("theme", [Theme.LIGHT, Theme.DARK])
def test_no_symbol_and_no_choice_is_black_on_a_dark_ground(theme: Theme) -> None:
    """Shapes of a legend have no colour of their own, and a menu's choice stands above the drawing."""
    figure = figure_of("runs", SHAPES["one value"])
    spec = with_data(figure, 320, theme)
    spec["title"] = {"text": "depth: 32", "subtitle": "load: uniform"}
    drawing = drawn_svg(json.dumps(spec))
    assert "depth: 32" in drawing
    assert BLACK.findall(drawing) == []


def test_symbols_without_a_colour_stand_out_on_a_page_in_both_themes() -> None:
    symbol = str(page_config()["legend"]["symbolBaseFillColor"])  # type: ignore[index,call-overload]
    assert min(contrast(symbol, ground) for ground in (PAPER, NIGHT)) >= GRAPHICS


@pytest.mark.parametrize("ground", [PAPER, NIGHT])
@pytest.mark.parametrize("colour", [*PALETTE, HIGHLIGHT, MUTED, *(colour for colour, _ in TONES.values())])
def test_marks_stand_out_on_a_light_and_on_a_dark_page(colour: str, ground: str) -> None:
    assert contrast(colour, ground) >= GRAPHICS


@pytest.mark.parametrize("count", range(1, 13))
def test_colours_of_print_stand_out_and_differ_in_lightness(count: int) -> None:
    found = print_colours(count)
    assert len(found) == count
    assert all(contrast(colour, PAPER) >= GRAPHICS for colour in found)
    levels = [luminance(colour) for colour in found]
    assert levels == sorted(levels)
    assert all(second > first for first, second in itertools.pairwise(levels))


@pytest.mark.parametrize("theme", Theme)
def test_words_of_a_figure_can_be_read(theme: Theme) -> None:
    config: dict[str, Any] = file_config(theme)
    ground = config["background"]
    inks = [
        config[part][name] for part in ("axis", "legend", "header") for name in ("labelColor", "titleColor")
    ]
    assert all(contrast(ink, ground) >= TEXT for ink in inks)


def schemes() -> Iterator[tuple[str, dict[str, str]]]:
    style = template_sources()["style.css"]
    blocks = re.findall(r":root(\S*)? \{([^}]*--paper[^}]*)\}", style)
    for name, block in blocks:
        yield name or "light", dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block))


@pytest.mark.parametrize(("name", "found"), [*schemes()])
def test_words_of_the_page_can_be_read(name: str, found: dict[str, str]) -> None:
    for ink in ("ink", "soft", "faint", "accent", "good", "warn", "bad"):
        for ground in ("paper", "raised"):
            assert contrast(found[ink], found[ground]) >= TEXT, (name, ink, ground)
    for ink in ("higher", "lesser", "same", "warn"):
        assert contrast(found[ink], found[f"{ink}-soft"]) >= TEXT, (name, ink)


def test_lines_of_print_have_dashes_and_marks_keep_their_shapes() -> None:
    colour = {"field": "name", "type": "nominal", "scale": {"domain": ["a", "b"], "range": ["#1", "#2"]}}
    spec: dict[str, Any] = {
        "layer": [
            {"mark": {"type": "line"}, "encoding": {"color": dict(colour)}},
            {"mark": {"type": "point"}, "encoding": {"color": dict(colour)}},
            {"mark": {"type": "line", "strokeDash": [2, 2]}, "encoding": {"color": dict(colour)}},
        ]
    }
    in_print(spec)
    line, point, dashed = spec["layer"]
    assert line["encoding"]["strokeDash"]["scale"]["range"][:2] == [[1, 0], [6, 3]]
    assert "strokeDash" not in point["encoding"]
    assert "strokeDash" not in dashed["encoding"]
    assert line["encoding"]["color"]["scale"]["range"] == print_colours(2)


@pytest.mark.parametrize(
    "chart",
    [
        distributions({"a": "#0072B2", "b": "#B98C00"}, "time [s]", [1.0, 2.0]),
        noise_quantiles({"a": "#0072B2", "b": "#B98C00"}, ["tcp"]),
    ],
)
def test_lines_on_a_page_differ_by_more_than_colour(chart: dict[str, Any]) -> None:
    dash, colour = (chart["encoding"][name] for name in ("strokeDash", "color"))
    assert len(set(map(tuple, dash["scale"]["range"]))) == 2
    # With one field, domain and legend a chart has one legend of both.
    assert dash["scale"]["domain"] == colour["scale"]["domain"]
    assert (dash["field"], dash["legend"]) == (colour["field"], colour["legend"])
