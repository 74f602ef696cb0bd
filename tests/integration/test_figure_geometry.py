"""Figures in a browser at the width of a column and on a small phone: nothing is cut off, no words meet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fixtures.browser import find_browser, tab
from fixtures.drawn_charts import CHARTS, LONG, SHAPES, Data, figure_of
from steelyard.report.charts.forest import MOST_ROWS
from steelyard.report.drawing.paper import FigureForm, Wish, write_paper_figures
from steelyard.report.html import render_html
from steelyard.report.page import Page, Section

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fixtures.browser import Tab
    from steelyard.report.page import Figure

pytestmark = [
    pytest.mark.needs_browser,
    pytest.mark.skipif(find_browser() is None, reason="needs_browser: chromium is not installed"),
]

MANY = Data(tuple(f"{name} {number}" for number in range(50) for name in LONG[-4:]), (3.0, 3.4, 4.0, 3.1))
ONE = SHAPES["one value"]
COLUMN_MM = 84.0
PHONE_PX = 320


def named(figure: Figure, name: str) -> Figure:
    return type(figure)(name, name, figure.caption, "", figure.spec, figure.datasets, figure.panel_width)


FIGURES = (
    *(figure_of(chart, SHAPES["many long names"]) for chart in CHARTS),
    named(figure_of("intervals", MANY), "intervals_of_200"),
    named(figure_of("intervals", ONE), "intervals_of_1"),
)
PAGE = Page("s", "?", (), (), (), (), (Section("all", "All", "", FIGURES),))
ON_PAPER = (
    *("intervals", "intervals_of_200", "intervals_of_1", "bars", "boxes", "curves", "latencies", "price"),
    *("runs", "speedups", "tail", "tree"),
)
"""Each kind of axis, legend and heading once: a drawing takes half a second."""

WORDS = """
const words = (svg) => [...svg.querySelectorAll('text')]
  .filter((text) => text.textContent.trim() && Number(getComputedStyle(text).opacity) > 0
    && Number(text.getAttribute('opacity') ?? 1) > 0)
  .map((text) => [text.textContent, text.getBoundingClientRect()]);
const name = (svg) => (svg.closest('[data-chart]') ?? svg.parentElement).dataset.chart;
"""
CUT_OFF = f"""(() => {{ {WORDS}
return [...document.querySelectorAll('svg')].flatMap((svg) => {{
  const frame = svg.getBoundingClientRect();
  return words(svg).filter(([, box]) => box.left < frame.left - 1 || box.right > frame.right + 1
      || box.top < frame.top - 1 || box.bottom > frame.bottom + 1)
    .map(([text, box]) => `${{name(svg)}}: ${{text}} ${{[box.left - frame.left, frame.right - box.right]}}`);
}}); }})()"""
MEETING = f"""(() => {{ {WORDS}
return [...document.querySelectorAll('svg')].flatMap((svg) => {{
  const found = words(svg);
  return found.flatMap(([text, a], at) => found.slice(at + 1)
    .filter(([, b]) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2
      && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4)
    .map(([other]) => `${{name(svg)}}: ${{text}} / ${{other}}`));
}}); }})()"""
WIDER = """[...document.querySelectorAll('[data-chart]')]
  .filter((chart) => chart.scrollWidth > chart.clientWidth + 1)
  .map((chart) => `${chart.dataset.chart}: ${chart.scrollWidth} in ${chart.clientWidth}`)"""


@pytest.fixture(scope="module")
def column(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    folder = tmp_path_factory.mktemp("column")
    written = write_paper_figures(PAGE, folder, Wish((FigureForm.SVG,), COLUMN_MM, ON_PAPER))
    drawings = "".join(
        f"<div data-chart='{path.stem}'>{path.read_text(encoding='utf-8')}</div>" for path in written
    )
    (folder / "all.html").write_text(f"<!doctype html><meta charset=utf-8>{drawings}", encoding="utf-8")
    with tab((folder / "all.html").as_uri(), tmp_path_factory.mktemp("profile")) as opened:
        opened.wait_for("document.readyState === 'complete'")
        yield opened


@pytest.fixture(scope="module")
def phone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    folder = tmp_path_factory.mktemp("phone")
    (folder / "page.html").write_text(render_html(PAGE), encoding="utf-8")
    profile = tmp_path_factory.mktemp("profile")
    with tab((folder / "page.html").as_uri(), profile, width=PHONE_PX, height=700) as opened:
        opened.wait_for("document.querySelector('[data-charts=drawn]') !== null")
        yield opened


@pytest.mark.slow("all charts are drawn")
@pytest.mark.timeout(120)
def test_at_the_width_of_a_column_nothing_is_cut_off_and_no_words_meet(column: Tab) -> None:
    assert column.evaluate("document.querySelectorAll('svg').length") == len(ON_PAPER)
    assert column.evaluate(CUT_OFF) == []
    assert column.evaluate(MEETING) == []


@pytest.mark.slow("all charts are drawn")
@pytest.mark.timeout(120)
def test_on_a_small_phone_nothing_is_cut_off_and_no_words_meet(phone: Tab) -> None:
    assert phone.evaluate("document.querySelectorAll('svg.marks').length") == len(FIGURES)
    assert phone.evaluate("document.documentElement.scrollWidth") <= PHONE_PX
    assert phone.evaluate(WIDER) == []
    assert phone.evaluate(CUT_OFF) == []
    assert phone.evaluate(MEETING) == []


@pytest.mark.slow("all charts are drawn")
@pytest.mark.timeout(120)
def test_at_the_width_of_a_report_no_figure_is_wider_than_its_place(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("screen")
    (folder / "page.html").write_text(render_html(PAGE), encoding="utf-8")
    with tab((folder / "page.html").as_uri(), tmp_path_factory.mktemp("profile"), height=900) as opened:
        opened.wait_for("document.querySelector('[data-charts=drawn]') !== null")
        assert opened.evaluate(WIDER) == []
        assert opened.evaluate(CUT_OFF) == []
        assert opened.evaluate(MEETING) == []


@pytest.mark.slow("it is one of those")
@pytest.mark.timeout(120)
def test_a_forest_of_200_rows_stays_a_picture(column: Tab) -> None:
    labels = "document.querySelectorAll('[data-chart=intervals_of_200] .role-axis-label text').length"
    assert column.evaluate(labels) >= MOST_ROWS
