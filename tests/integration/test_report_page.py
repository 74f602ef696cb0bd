"""The report in a real browser: it draws, answers to the reader, and asks nobody for anything."""

from __future__ import annotations

import base64
import re
import shutil
import subprocess
import zipfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fixtures.browser import find_browser, tab
from fixtures.stability_sample import write_sample
from steelyard.cli import execute

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fixtures.browser import Tab

pytestmark = [
    pytest.mark.needs_browser,
    pytest.mark.skipif(find_browser() is None, reason="needs_browser: chromium is not installed"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = write_sample(tmp_path_factory.mktemp("study") / "night shift")
    assert execute(["report", str(made)]) == 0
    return made


@pytest.fixture(scope="module")
def page(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with tab((folder / "report.html").as_uri(), tmp_path_factory.mktemp("profile")) as opened:
        opened.wait_for("document.querySelector('[data-charts=drawn]') !== null")
        yield opened


@pytest.mark.long("a browser draws all")
def test_every_chart_is_drawn(page: Tab) -> None:
    figures = page.evaluate("document.querySelectorAll('[data-chart]').length")
    assert figures == 9
    assert page.evaluate("document.querySelectorAll('[data-chart] svg.marks').length") == figures
    assert (
        page.evaluate(
            "Math.min(...[...document.querySelectorAll('svg.marks')].map((s) => "
            "s.querySelectorAll('path').length))"
        )
        > 5
    )
    assert page.evaluate("document.querySelectorAll('.failed').length") == 0


def test_only_the_page_itself_is_requested(page: Tab, folder: Path) -> None:
    assert [address for address in page.requests if not address.startswith("data:")] == [
        (folder / "report.html").as_uri()
    ]


def test_the_console_stays_empty(page: Tab) -> None:
    assert page.console == []


@pytest.mark.long("reports of two studies are written, and a browser draws them")
@pytest.mark.timeout(120)
@pytest.mark.parametrize("study", ["communication", "stability"])
def test_layers_without_rows_leave_the_console_empty_and_long_words_wrap(study: str, tmp_path: Path) -> None:
    package = Path(__file__).parents[1] / "fixtures" / "packages" / f"steelyard-0.1.0-run-{study}.zip"
    with zipfile.ZipFile(package) as opened:
        opened.extractall(tmp_path)
    result = tmp_path / "result"
    assert execute(["report", str(result)]) == 0
    with tab((result / "report.html").as_uri(), tmp_path / "profile", 320) as page:
        page.wait_for("document.querySelector('[data-charts=drawn]') !== null")
        assert page.console == [], "an empty layer is no fault"
        page.evaluate(
            "(() => { const at = document.createElement('p'); at.innerHTML = '<code></code>';"
            " at.firstChild.textContent = 'x'.repeat(200); document.querySelector('main').append(at); })()"
        )
        assert page.evaluate("document.documentElement.scrollWidth") <= 320


def test_a_hostile_name_is_shown_and_never_executed(page: Tab) -> None:
    assert page.evaluate("window.hacked === undefined")
    assert page.evaluate("document.querySelectorAll('main img').length") == 0
    assert page.evaluate(
        "document.querySelector('main').textContent.includes('<script>window.hacked=1</script>')"
    )


def test_even_injected_markup_is_not_executed(page: Tab) -> None:
    page.evaluate("document.querySelector('footer').innerHTML = `<img src=x onerror='window.injected=1'>`")
    page.evaluate("new Promise((done) => setTimeout(done, 200))")
    assert page.evaluate("window.injected === undefined")
    page.evaluate("document.querySelector('footer').textContent = ''")
    assert any("Content Security Policy" in line for line in page.console)
    page.console.clear()
    page.requests[:] = [address for address in page.requests if address.endswith("report.html")]


def test_a_click_shows_the_evidence_and_escape_closes_it(page: Tab) -> None:
    page.evaluate("document.querySelector('.verdict .claim b').click()")
    assert page.evaluate("document.getElementById('evidence').hidden") is False
    shown = page.evaluate("document.getElementById('evidence').textContent")
    assert "recommended_workers/bare" in shown
    page.evaluate("document.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape'}))")
    assert page.evaluate("document.getElementById('evidence').hidden") is True


def rows(page: Tab, table: str) -> list[str]:
    all_rows = f"[...document.querySelectorAll('[data-table={table}] tbody tr')]"
    shown = f"{all_rows}.filter((row) => row.checkVisibility())"
    script = f"{shown}.map((row) => row.lastElementChild.textContent)"
    return list(page.evaluate(script))


def test_tables_sort_with_na_last_filter_and_unfold(page: Tab) -> None:
    assert rows(page, "outside_error_wall") == []
    page.evaluate("document.querySelector('#outside_error_wall summary').click()")
    first = rows(page, "outside_error_wall")
    assert len(first) == 15
    page.evaluate("document.querySelector('[data-table=outside_error_wall] th:last-child button').click()")
    ascending = [float(text) for text in rows(page, "outside_error_wall")]
    assert ascending == sorted(ascending)
    page.evaluate("document.querySelector('[data-more=outside_error_wall]').click()")
    everything = rows(page, "outside_error_wall")
    assert len(everything) == 60
    assert everything[-5:] == ["NA"] * 5
    page.evaluate(
        "(() => { const f = document.querySelector('[data-filter=outside_error_wall]');"
        " f.value = 'docker qsort'; f.dispatchEvent(new Event('input')); })()"
    )
    assert len(rows(page, "outside_error_wall")) == 3


def test_a_menu_changes_its_chart(page: Tab) -> None:
    marks = "document.querySelector('[data-chart=boxes] svg').innerHTML"
    before = page.evaluate(marks)
    page.evaluate(
        "(() => { const s = document.querySelector('[data-chart=boxes] select');"
        " s.selectedIndex = 2; s.dispatchEvent(new Event('change')); s.dispatchEvent(new "
        "Event('input')); })()"
    )
    page.evaluate("new Promise((done) => setTimeout(done, 300))")
    assert page.evaluate(marks) != before


def test_all_folds_open_for_paper(page: Tab) -> None:
    folded = "document.querySelectorAll('details.fold:not([open])').length"
    assert page.evaluate(folded) > 0
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(folded) == 0
    page.evaluate("for (const one of document.querySelectorAll('details.fold')) one.open = false")


def test_paper_has_every_row(page: Tab) -> None:
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    page.call("Emulation.setEmulatedMedia", media="print")
    missing = (
        "[...document.querySelectorAll('[data-table] tbody tr')].filter((row) => !row.checkVisibility())"
    )
    assert page.evaluate("document.querySelectorAll('tr.more').length") > 0
    assert page.evaluate(f"{missing}.length") == 0
    page.call("Emulation.setEmulatedMedia", media="")
    page.evaluate("for (const one of document.querySelectorAll('details.fold')) one.open = false")


WORD = re.compile(r"(?<![\w-])[A-Za-z0-9]{3,12}(?![\w-])")
"""Longer ones may be broken into lines."""

TEXTS = """[...document.querySelectorAll('[data-table] tbody td, details.fold p')].flatMap((one) => {
  const texts = document.createTreeWalker(one, NodeFilter.SHOW_TEXT);
  const found = [];
  while (texts.nextNode()) found.push(texts.currentNode.textContent);
  return found;
}).join(' ')"""


@pytest.mark.long("a browser prints")
@pytest.mark.skipif(shutil.which("pdftotext") is None, reason="pdftotext (poppler-utils) is not installed")
def test_a_printed_page_has_every_word_of_every_table_and_figure_note(page: Tab, tmp_path: Path) -> None:
    wanted = Counter(WORD.findall(page.evaluate(TEXTS)))
    printed = base64.b64decode(page.call("Page.printToPDF", preferCSSPageSize=True)["data"])
    (tmp_path / "page.pdf").write_bytes(printed)
    words = ["pdftotext", str(tmp_path / "page.pdf"), "-"]
    text = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    assert sum(wanted.values()) > 2000
    assert {word: count for word, count in wanted.items() if text.count(word) < count} == {}


SHEET_PX = 690
"""Width of A4 less its margins, at 96 px per inch."""

SPLIT_APART = """[...document.querySelectorAll('h2, h3, .lead, .table-title, .message, summary')]
    .filter((one) => getComputedStyle(one).breakAfter !== 'avoid').map((one) => one.outerHTML.slice(0, 80))"""
SPLIT_INSIDE = """[...document.querySelectorAll('figure.block, .card, .notice, tr, thead, summary')]
    .filter((one) => getComputedStyle(one).breakInside !== 'avoid')
    .map((one) => one.outerHTML.slice(0, 80))"""
TOO_WIDE = f"""[...document.querySelectorAll('main table, main svg.marks, main h1, main code, main li')]
    .filter((one) => one.getBoundingClientRect().right > {SHEET_PX})
    .map((one) => [one.outerHTML.slice(0, 80), one.getBoundingClientRect().right])"""


@pytest.mark.long("a browser lays the page out again")
def test_a_sheet_holds_what_it_shows_and_says_what_is_chosen(page: Tab) -> None:
    metrics = {"height": 1000, "deviceScaleFactor": 1, "mobile": False}
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    page.call("Emulation.setEmulatedMedia", media="print")
    page.call("Emulation.setDeviceMetricsOverride", width=SHEET_PX, **metrics)
    assert page.evaluate(TOO_WIDE) == []
    assert page.evaluate(SPLIT_APART) == []
    assert page.evaluate(SPLIT_INSIDE) == []
    assert page.evaluate("getComputedStyle(document.querySelector('thead')).display") == "table-header-group"
    assert page.evaluate("getComputedStyle(document.querySelector('th button')).display") == "contents"
    menus = "[...document.querySelectorAll('.vega-bind select')]"
    assert page.evaluate(f"{menus}.length") > 0
    assert page.evaluate(f"{menus}.every((one) => one.checkVisibility())")
    page.call("Emulation.setDeviceMetricsOverride", width=1280, **{**metrics, "height": 2000})
    page.call("Emulation.setEmulatedMedia", media="")
    page.evaluate("for (const one of document.querySelectorAll('details.fold')) one.open = false")


def test_the_keyboard_reaches_a_fold_and_its_focus_is_visible(page: Tab) -> None:
    page.evaluate("document.querySelector('details.fold > summary').focus({focusVisible: true})")
    outline = "getComputedStyle(document.activeElement).outline"
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"
    assert "2px" in page.evaluate(outline)
    assert "solid" in page.evaluate(outline)


OVERLAPPING_LABELS = """
[...document.querySelectorAll('[data-chart] svg .role-axis-label')].flatMap((group) => {
  const boxes = [...group.querySelectorAll('text')]
    .filter((text) => text.textContent && getComputedStyle(text).opacity !== '0')
    .map((text) => [text.textContent, text.getBoundingClientRect()]);
  return boxes.flatMap(([name, a], at) => boxes.slice(at + 1)
    .filter(([, b]) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
      && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3)
    .map(([other]) => `${group.closest('[data-chart]').dataset.chart}: ${name} / ${other}`));
})
"""

WIDER_THAN_THEIR_FRAME = """
[...document.querySelectorAll('[data-chart]')].filter((chart) => chart.scrollWidth > chart.clientWidth + 1)
  .map((chart) => `${chart.dataset.chart}: ${chart.scrollWidth} in ${chart.clientWidth}`)
"""


@pytest.mark.parametrize("width", [1400, 420])
def test_charts_fit_and_their_labels_do_not_overlap(folder: Path, tmp_path: Path, width: int) -> None:
    with tab((folder / "report.html").as_uri(), tmp_path, width=width, height=900) as opened:
        opened.wait_for("document.querySelector('[data-charts=drawn]') !== null")
        assert (
            opened.evaluate("document.querySelectorAll('[data-chart] svg .role-axis-label text').length") > 40
        )
        assert opened.evaluate(OVERLAPPING_LABELS) == []
        assert opened.evaluate(WIDER_THAN_THEIR_FRAME) == []


def test_the_theme_can_be_switched(page: Tab) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(background)
    page.evaluate("document.getElementById('theme').click()")
    assert page.evaluate(background) != before
    page.evaluate("document.getElementById('theme').click()")


def test_a_phone_shows_everything_without_scrolling_sideways(folder: Path, tmp_path: Path) -> None:
    with tab((folder / "report.html").as_uri(), tmp_path, width=360, height=740) as phone:
        phone.wait_for("document.querySelector('[data-charts=drawn]') !== null")
        assert phone.evaluate("document.documentElement.scrollWidth") <= 360
        assert phone.console == []


def test_headings_captions_and_names_are_there(page: Tab) -> None:
    assert page.evaluate("document.querySelectorAll('h1').length") == 1
    assert page.evaluate(
        "[...document.querySelectorAll('table')].every((t) => t.caption && t.caption.textContent)"
    )
    assert page.evaluate("[...document.querySelectorAll('th')].every((t) => t.scope === 'col')")
    assert page.evaluate(
        "[...document.querySelectorAll('svg.marks')].every((s) => s.closest('[aria-label]'))"
    )
    assert page.evaluate("[...document.querySelectorAll('select, input')].every((s) => s.closest('label'))")
    assert page.evaluate("document.documentElement.lang") == "en"
