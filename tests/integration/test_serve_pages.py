"""Pages of results in a real browser, by clicks, as a stranger looks for what was measured."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from fixtures.browser import find_browser
from fixtures.served import STEELYARD, browsers, browsing, served
from fixtures.stability_sample import write_sample
from steelyard.cli import execute
from steelyard.record.labels import Labels, write_labels

pytest.importorskip("starlette", reason="needs the extra `serve`")
pytest.importorskip("playwright", reason="needs playwright")

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

    from fixtures.served import Served

pytestmark = [
    pytest.mark.needs_browser,
    pytest.mark.skipif(find_browser() is None, reason="needs_browser: chromium is not installed"),
]

FAST, SLOW = "sleep 0.005", "sleep 0.02"
RESULT = re.compile(r"/results/[0-9a-f]{10}$")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    for name in ("before", "after"):
        assert execute(["compare", "--out", str(folder / name), "--budget", "60s", FAST, SLOW]) == 1
        assert execute(["report", str(folder / name)]) == 0
    write_labels(folder / "after", Labels(tags=("candidate",)))
    write_sample(folder / "night shift")
    write_long_names(folder)
    return folder


def write_long_names(folder: Path) -> None:
    """Write three results of one program whose name, and whose folders, have no space to break a line at."""
    columns = ["--column", "workload=name", "--column", "value=time", "--unit", "ms"]
    for number in range(3):
        values = "".join(f"{'org.example.Sort' * 20},{30 + 9 * number + at / 100}\n" for at in range(20))
        recording = folder.parent / f"{number}.csv"
        recording.write_text(f"name,time\n{values}", encoding="utf-8")
        result = str(folder / f"{number}{'_long' * 30}")
        assert execute(["import", "csv", str(recording), *columns, "--out", result]) == 0
        assert execute(["analyse", result]) == 0


@pytest.fixture(scope="module")
def server(results: Path) -> Iterator[Served]:
    with served(str(results)) as started:
        yield started


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsers() as started:
        yield started


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with browsing(browser, viewport={"width": 1280, "height": 900}) as opened:
        yield opened


def until(page: Page, expression: str, seconds: float = 20.0) -> None:
    """Wait for a condition; the policy of the pages forbids the driver to wait inside of them."""
    end = time.monotonic() + seconds
    while not page.evaluate(expression):
        assert time.monotonic() < end, f"never true: {expression}"
        page.wait_for_timeout(50)


def open_first(page: Page, server: Served, words: str = SLOW) -> None:
    page.goto(f"{server.base}/?text={words}")
    page.click("tbody a")


@pytest.mark.long("starts a server and a browser, after two comparisons")
def test_filters_narrow_the_list_without_a_new_page(page: Page, server: Served) -> None:
    page.goto(server.base)
    assert page.inner_text(".count") != "1 result"
    page.fill("[name=study]", "stability")
    page.click("text=Filter")
    until(page, "document.querySelector('.count').textContent === '1 result'")
    assert "study=stability" in page.url
    page.fill("[name=study]", "")
    page.fill("[name=text]", "no such thing")
    page.click("text=Filter")
    page.wait_for_selector("text=No result fulfils this filter")
    page.go_back()
    page.wait_for_selector("text=1 result")
    page.goto(f"{server.base}/?tag=candidate")
    assert page.locator("tbody tr").count() == 1
    assert SLOW in page.inner_text("tbody tr")


def test_a_result_shows_its_report_in_a_frame_of_its_own(page: Page, server: Served) -> None:
    open_first(page, server)
    page.wait_for_url(RESULT)
    assert "slower" in page.inner_text(".answer")
    report = page.frame_locator("iframe.report")
    report.locator("[data-charts=drawn]").wait_for(state="attached")
    origin = page.frames[1].evaluate("origin")
    assert origin == "null", "a report must not reach the pages around it"


@pytest.mark.long("a result is computed again")
def test_a_click_computes_everything_again(page: Page, server: Served) -> None:
    open_first(page, server)
    page.click("text=Verify")
    page.wait_for_selector("text=Confirmed: every finding follows from the raw data")


def test_findings_filter_and_sort_on_the_server(page: Page, server: Served) -> None:
    open_first(page, server, "night")
    page.click("nav >> text=Findings")
    page.select_option("[name=claim]", "mean_comparison")
    page.wait_for_selector("caption >> text=mean comparison")
    total = page.inner_text(".count")
    page.click("th >> text=ratio")
    page.wait_for_selector("th[aria-sort=ascending]")
    column = page.eval_on_selector_all(
        "thead th", "all => all.findIndex(th => th.ariaSort === 'ascending') + 1"
    )
    values = page.eval_on_selector_all(
        f"tbody td:nth-child({column})",
        "all => all.map(td => parseFloat(td.textContent)).filter(x => !isNaN(x))",
    )
    assert len(values) > 5
    assert values == sorted(values)
    page.fill("[name=text]", "docker")
    page.click("text=Show")
    until(page, f"document.querySelector('.count').textContent !== '{total}'")
    assert all("docker" in row for row in page.locator("tbody tr").all_inner_texts())


@pytest.mark.long("charts are drawn")
def test_the_values_of_a_cell_are_drawn(page: Page, server: Served) -> None:
    open_first(page, server)
    page.click("nav >> text=Cells")
    page.click("tbody tr:nth-child(3) a")
    page.wait_for_selector("img.drawn")
    until(page, "[...document.querySelectorAll('img.drawn')].every(i => i.complete && i.naturalWidth)")
    assert page.locator("img.drawn").count() == 2
    with page.expect_download() as started:
        page.click("text=All values as CSV")
    lines = started.value.path().read_text().splitlines()
    assert lines[0] == "run_id,iteration,metric,value,unit"
    assert len(lines) - 1 == int(page.inner_text("dl.about >> nth=1 >> dd >> nth=0"))


@pytest.mark.long("charts are drawn")
def test_two_results_are_compared(page: Page, server: Served) -> None:
    page.goto(f"{server.base}/?text={SLOW}")
    for box in page.locator("tbody [type=checkbox]").all():
        box.check()
    page.click("text=Compare the two that are chosen")
    page.wait_for_selector("h1 >> text=Two results of compare")
    names = page.locator("[aria-label=Ratios] tbody tr td:first-child").all_inner_texts()
    assert any(FAST in name for name in names)
    until(page, "document.querySelector('img.drawn').naturalWidth > 0")
    page.fill("[name=margin]", "90")
    page.click("button >> text=Compare")
    page.wait_for_selector("text=2 agreed")


def test_the_history_says_who_accepted_a_level(page: Page, server: Served, results: Path) -> None:
    folders = [str(results / name) for name in ("before", "after")]
    execute(["history", *folders, "--accept", "after", "--why", "more work since", "--by", "Ada"])
    open_first(page, server)
    page.click("nav >> text=History")
    page.wait_for_selector("h1 >> text=History")
    row = page.inner_text("[aria-label='Accepted levels'] tbody tr")
    assert "Ada" in row
    assert "more work since" in row
    until(page, "document.querySelector('img.drawn').naturalWidth > 0")


@pytest.mark.long("a comparison runs for some seconds beside it")
def test_a_comparison_is_followed_while_it_runs(page: Page, server: Served, results: Path) -> None:
    words = ["--out", str(results / "running"), "--budget", "90s", "--margin", "0.01%", FAST, f"{FAST}0"]
    running = subprocess.Popen(
        [*STEELYARD, "compare", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        page.goto(server.base)
        end = time.monotonic() + 18
        while not page.locator(".state.warn").count() and time.monotonic() < end:
            page.wait_for_timeout(500)
            page.reload()
        page.click("tr:has(.state.warn) a")
        page.wait_for_url(re.compile("/live$"))
        page.wait_for_selector("text=Estimate so far")
        runs = "Number(document.querySelectorAll('#live dd')[1].textContent)"
        first = page.evaluate(runs)
        until(page, f"{runs} > {first}")
        assert "against" in page.inner_text("[aria-label='Estimate so far'] tbody tr")
        running.send_signal(2)
        page.wait_for_url(RESULT)
    finally:
        with suppress(ProcessLookupError):
            running.terminate()
        running.wait(20)
    assert not list((results / "running").glob("ledger.sqlite-*")), "watching leaves nothing in the folder"


@pytest.mark.parametrize("width", [320, 1280])
def test_names_without_a_space_make_no_page_scroll_sideways(
    browser: Browser, server: Served, width: int
) -> None:
    with browsing(browser, viewport={"width": width, "height": 700}) as page:
        page.goto(f"{server.base}/?study=imported")
        addresses = [str(link.get_attribute("href")) for link in page.query_selector_all("tbody a")]
        first, second, _ = (address.rpartition("/")[2] for address in addresses)
        tabs = (
            addresses[0],
            *(f"{addresses[0]}/{tab}" for tab in ("findings", "cells", "cells/0", "provenance")),
        )
        both = (f"/compare?result={first}&result={second}", f"/history?result={first}")
        for path in ("/?study=imported", *tabs, *both):
            page.goto(server.base + path)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        assert "org.example.Sort" * 20 in page.inner_text("h2")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 390])
def test_pages_fit_a_phone(browser: Browser, server: Served, width: int, scheme: str) -> None:
    with browsing(browser, viewport={"width": width, "height": 700}, color_scheme=scheme) as phone:
        phone.goto(f"{server.base}/?study=compare")
        result = str(phone.get_attribute("tbody a", "href"))
        for path in ("/", result, f"{result}/findings", f"{result}/cells/2", f"{result}/provenance"):
            phone.goto(server.base + path)
            assert phone.evaluate("document.documentElement.scrollWidth") <= width, path


def test_pages_work_without_a_script(browser: Browser, server: Served) -> None:
    with browsing(browser, java_script_enabled=False) as page:
        page.goto(server.base)
        page.fill("[name=study]", "compare")
        page.click("text=Filter")
        assert "study=compare" in page.url
        page.click("tbody a")
        page.click("nav >> text=Findings")
        page.click("th >> text=verdict")
        assert page.get_attribute("th:has-text('verdict')", "aria-sort") == "ascending"


@pytest.mark.long("the list is looked through once in 3 s")
def test_a_removed_folder_and_a_damaged_one_are_said(page: Page, server: Served, results: Path) -> None:
    for name in ("removed", "damaged"):
        shutil.copytree(results / "before", results / name)
    page.wait_for_timeout(3100)
    page.goto(f"{server.base}/?study=compare")
    links = {
        page.goto(f"{link}/provenance") and page.inner_text("td >> nth=0"): link
        for link in page.eval_on_selector_all("tbody a", "all => all.map(a => a.href)")
    }
    shutil.rmtree(results / "removed")
    (results / "damaged" / "findings.json").write_text("{")
    answer = page.request.get(f"{links[str(results / 'removed')]}/findings")
    assert answer.status == 400
    assert "is gone" in answer.text()
    answer = page.request.get(f"{links[str(results / 'damaged')]}/findings")
    assert answer.status == 422
    assert "findings.json" in answer.text()
    shutil.rmtree(results / "damaged")
