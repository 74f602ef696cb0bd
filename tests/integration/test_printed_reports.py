"""Reports on paper: all that a page shows is there, nothing is cut off, no number is torn from its unit."""

from __future__ import annotations

import base64
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from fixtures.browser import find_browser, tab
from fixtures.git_repository import MadeRepository
from steelyard.cli import execute

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fixtures.browser import Tab

TESTS: Final = Path(__file__).parents[1]
PACKAGES: Final = TESTS / "fixtures" / "packages"

pytestmark = [
    pytest.mark.needs_browser,
    pytest.mark.skipif(find_browser() is None, reason="needs_browser: chromium is not installed"),
    pytest.mark.skipif(
        shutil.which("pdftotext") is None, reason="pdftotext (poppler-utils) is not installed"
    ),
]

CONTROLS: Final = (
    ".theme, .skip, .contents, .hint, .more-button, .table-tools label, .evidence, .reading > summary, "
    ".vega-bind-name, .vega-embed details, select, option"
)
"""What is operated, and the list of sections, whose titles stand as headings; a print says what is chosen."""

UNSEEN: Final = "script, style, noscript, caption, [hidden], svg [opacity='0']"
SHOWN: Final = f"""(() => {{
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = [];
  while (texts.nextNode()) {{
    const text = texts.currentNode;
    if (!text.parentElement.closest({CONTROLS!r}) && !text.parentElement.closest({UNSEEN!r}))
      found.push(text.textContent);
  }}
  return found.join(' ');
}})()"""
HEADINGS: Final = """[...document.querySelectorAll(
  'h2, h3, .lead, .table-title, .message, .cards-title, .table-tools .file')].map((one) => one.textContent)"""

MARGIN_PT: Final = 13 * 72 / 25.4
"""As the style sheet has it, left and right."""

PAGE: Final = re.compile(r'<page width="([\d.]+)" height="([\d.]+)">')
BOX: Final = re.compile(r'<word xMin="([-\d.]+)" yMin="([-\d.]+)" xMax="([-\d.]+)" yMax="([-\d.]+)">(.*?)<')
TORN: Final = re.compile(r"\d\n(?:[nmu]?s|%|[KMG]?i?B)(?!\w)")


def _kept(name: str) -> Callable[[Path], Path]:
    def written(folder: Path) -> Path:
        shutil.unpack_archive(PACKAGES / f"steelyard-0.1.0-run-{name}.zip", folder)
        assert execute(["report", str(folder / "result")]) == 0
        return folder / "result" / "report.html"

    return written


def _bisect(folder: Path) -> Path:
    made = MadeRepository(folder / "source")
    made.commit("begin", program="#!/bin/sh\nexec sleep $(cat seconds)\n", seconds="0.01")
    made.commit("a change", text="1")
    made.commit("a subject of many words: sleep longer, and say so", seconds="0.03")
    words = ["bisect", "HEAD~2", "HEAD", "--out", str(folder / "result"), "--report", "--", "./program"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STEELYARD_BUILDS", str(folder / "builds"))
        patch.chdir(made.folder)
        assert execute(words) == 0
    return folder / "result" / "report.html"


SUITE: Final = """
margin_percent = 40

[benchmark.program]
command = "./program"
shell = false

[benchmark.sleep]
command = "sleep {s}"
parameters = { s = [0.001, 0.002] }
"""


def _bench(folder: Path) -> Path:
    made = MadeRepository(folder / "source")
    made.commit(
        "quick",
        program="#!/bin/sh\nexec sleep $(cat seconds)\n",
        seconds="0.001",
        steelyard_dot_toml=SUITE,
    )
    made.commit("slow", seconds="0.02")
    words = ["bench", "--rev", "HEAD~1", "--rev", "HEAD", "--minutes", "0.1", "--out", str(folder / "result")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STEELYARD_BUILDS", str(folder / "builds"))
        patch.chdir(made.folder)
        assert execute(words) in {0, 1}
    assert execute(["report", str(folder / "result")]) == 0
    return folder / "result" / "report.html"


def _imported(folder: Path) -> Path:
    recording = TESTS / "fixtures" / "tool_files" / "fio.json"
    assert execute(["import", "fio", str(recording), "--out", str(folder / "result")]) == 0
    assert execute(["analyse", str(folder / "result")]) == 0
    assert execute(["report", str(folder / "result")]) == 0
    return folder / "result" / "report.html"


def _history(folder: Path) -> Path:
    recordings = []
    for at in range(14):
        path = folder / f"night {at}.csv"
        rows = [f"sort,{30 + 6 * (at > 7) + 0.01 * run + 0.02 * (at * 7 % 5)}" for run in range(8)]
        path.write_text("\n".join(["name,wall", *rows]), encoding="utf-8")
        recordings.append(str(path))
    columns = ["--column", "workload=name", "--column", "value=wall", "--unit", "ms"]
    assert execute(["import", "csv", *recordings, *columns, "--out", str(folder / "result")]) == 0
    assert execute(["history", str(folder / "result"), "--html", str(folder / "page.html")]) in {0, 1}
    return folder / "page.html"


KEPT: Final = ("stability", "communication", "colocation", "replication", "scaling", "compare")
WRITTEN: Final[dict[str, Callable[[Path], Path]]] = {
    **{name: _kept(name) for name in KEPT},
    "bench": _bench,
    "bisect": _bisect,
    "history": _history,
    "imported": _imported,
}


@pytest.fixture(scope="module", params=WRITTEN)
def page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    written = WRITTEN[request.param](tmp_path_factory.mktemp(request.param))
    with tab(written.as_uri(), tmp_path_factory.mktemp("profile")) as opened:
        opened.wait_for("document.querySelector('[data-charts=drawn]') !== null")
        yield opened


def printed(page: Tab, path: Path, *words: str) -> str:
    """Give what `pdftotext` reads in the print of a page."""
    path.write_bytes(base64.b64decode(page.call("Page.printToPDF", preferCSSPageSize=True)["data"]))
    read = subprocess.run(["pdftotext", *words, str(path), "-"], check=True, capture_output=True, text=True)
    return read.stdout


def squeezed(text: str) -> str:
    """Give a text in which it makes no difference where lines end and which letters are large."""
    return "".join(text.casefold().split())


@pytest.mark.slow("ten reports are written and printed")
@pytest.mark.timeout(120)
def test_a_print_has_every_word_of_the_page_whole_and_inside_its_margins(page: Tab, tmp_path: Path) -> None:
    shown = page.evaluate(SHOWN)
    paper = printed(page, tmp_path / "page.pdf", "-raw")
    on_screen, on_paper = squeezed(shown), squeezed(paper)
    words, found = (Counter(text.casefold().split()) for text in (shown, paper))
    assert sum(words.values()) > 100
    # A long word has several lines; a short one is also where two others meet.
    assert {
        word: count
        for word, count in words.items()
        if found[word] < count and on_paper.count(word) < on_screen.count(word)
    } == {}
    assert TORN.findall(paper) == []
    boxes = printed(page, tmp_path / "page.pdf", "-bbox")
    outside = []
    for sheet in boxes.split("<page ")[1:]:
        width, height = map(float, PAGE.match("<page " + sheet).groups())  # type: ignore[union-attr]
        for *edges, word in BOX.findall(sheet):
            left, top, right, bottom = map(float, edges)
            is_inside = left > MARGIN_PT - 1 and right < width - MARGIN_PT + 1 and 0 < top < bottom < height
            outside += [] if is_inside else [(word, edges)]
    assert outside == []


@pytest.mark.slow("ten reports are written and printed")
@pytest.mark.timeout(120)
def test_no_heading_stands_alone_at_the_end_of_a_page(page: Tab, tmp_path: Path) -> None:
    headings = {squeezed(each).rstrip(".") for each in page.evaluate(HEADINGS)}
    page.evaluate("document.querySelector('main').prepend(window.room = document.createElement('div'))")
    alone = []
    # Everything moves down the pages, by less than three lines each time, until it was at all heights.
    for height in range(0, 1000, 36):
        page.evaluate(f"window.room.style.height = '{height}px'")
        sheets = printed(page, tmp_path / "page.pdf").split("\f")
        for sheet in sheets[:-2]:
            last = [line for line in sheet.splitlines() if line.strip()][-1:]
            alone += [(height, line) for line in last if squeezed(line).rstrip(".") in headings]
    page.evaluate("window.room.remove()")
    assert alone == []
