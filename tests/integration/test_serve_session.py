"""A whole session of a stranger: measure, find, watch what runs, compare, look back, take a figure along."""

from __future__ import annotations

import re
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from fixtures.browser import find_browser
from fixtures.served import STEELYARD, browsers, browsing, served

pytest.importorskip("starlette", reason="needs the extra `serve`")
pytest.importorskip("playwright", reason="needs playwright")

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

pytestmark = [
    pytest.mark.needs_browser,
    pytest.mark.skipif(find_browser() is None, reason="needs_browser: chromium is not installed"),
    pytest.mark.timing,
]

STABILITY = """
study = "stability"
blocks = 2
iterations = 4
workers = [1, 2]
isolation = ["bare"]
workloads = ["exp/exp_float"]
"""
SCALING = 'study = "scaling"\nworkers = [1, 2]\ntrials = 5\n'
COMPARE = ("compare", "--budget", "20s", "sleep 0.005", "sleep 0.02", "--out")
RESULT = re.compile(r"/results/[0-9a-f]{10}$")


def steelyard(folder: Path, *words: str) -> None:
    done = subprocess.run([*STEELYARD, *words], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode in {0, 1}, done.stderr


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a folder with two studies and a comparison, of which two have a tag."""
    monkeypatch.setenv("STEELYARD_CATALOGUE", str(tmp_path / "catalogue.sqlite"))
    (tmp_path / "stability.toml").write_text(STABILITY, encoding="utf-8")
    (tmp_path / "scaling.toml").write_text(SCALING, encoding="utf-8")
    steelyard(tmp_path, "run", "stability", "--quick", "--study-file", "stability.toml", "--out", "night")
    program = ("--study-file", "scaling.toml", "--command", "sleep 0.0{workers}")
    steelyard(tmp_path, "run", "scaling", *program, "--out", "threads")
    steelyard(tmp_path, *COMPARE, "before")
    for result in ("before", "threads"):
        steelyard(tmp_path, "results", "tag", f"./{result}", "allocator")
    return tmp_path


def filtered(page: Page, count: int, **fields: str) -> None:
    """Go to the list and narrow it, as a hand does."""
    page.click("nav >> text=Results")
    for name, value in fields.items():
        page.fill(f"[name={name}]", value)
    page.click("text=Filter")
    page.wait_for_selector(f".count >> text={count} results")


def find_by_tag(page: Page) -> None:
    assert page.locator("tbody tr").count() == 3
    filtered(page, 2, tag="allocator")
    assert "tag=allocator" in page.url


def watch(page: Page, folder: Path) -> None:
    """Look at a comparison while it runs; its state is right when it has ended."""
    words = [*STEELYARD, *COMPARE, "after", "--margin", "0.01%"]
    running = subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 30
    while not page.locator(".state.warn").count() and time.monotonic() < end:
        page.wait_for_timeout(300)
        page.click("nav >> text=Results")
    page.click("tr:has(.state.warn) a")
    page.wait_for_selector("text=Estimate so far")
    assert running.wait(60) in {0, 1}
    page.wait_for_url(RESULT, timeout=30_000)
    assert "slower" in page.inner_text(".answer")


def compare_two(page: Page) -> None:
    filtered(page, 2, study="compare")
    for box in page.locator("tbody [type=checkbox]").all():
        box.check()
    page.click("text=Compare the two that are chosen")
    page.wait_for_selector("h1 >> text=Two results of compare")
    assert page.locator("[aria-label=Ratios] tbody tr").count() == 2


def look_back(page: Page) -> None:
    """Go from the newer side of the comparison to its history."""
    page.click(".sides td:nth-child(3) a")
    page.click("nav >> text=History")
    page.wait_for_selector("h1 >> text=History")
    assert "2 results" in page.inner_text("main")


@pytest.mark.long("two studies and two comparisons are measured, one while it is watched")
@pytest.mark.timeout(300)
def test_a_stranger_measures_finds_watches_compares_and_takes_a_figure_along(folder: Path) -> None:
    with (
        served() as server,
        browsers() as browser,
        browsing(browser, viewport={"width": 1280, "height": 900}) as page,
    ):
        page.goto(server.address)
        find_by_tag(page)
        watch(page, folder)
        compare_two(page)
        look_back(page)
    steelyard(folder, "figure", "after", "ratios-forest", "--width", "84mm", "--out", "ratios.pdf")
    box = re.search(rb"/MediaBox\s*\[\s*0 0 ([\d.]+)", (folder / "ratios.pdf").read_bytes())
    assert box is not None
    assert float(box[1]) == pytest.approx(84 / 25.4 * 72, abs=1)
