"""What a hand does with the pages: keys, choices faster than answers, a phone, a link from elsewhere."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest

from fixtures.browser import find_browser
from fixtures.outcomes import make_plan
from fixtures.served import browsers, browsing, served
from fixtures.stability_sample import write_sample
from steelyard.cli import execute
from steelyard.record.folder_lock import claimed
from steelyard.record.ledger import LEDGER_NAME, Ledger
from unit.serve.test_live import record

pytest.importorskip("starlette", reason="needs the extra `serve`")
pytest.importorskip("playwright", reason="needs playwright")

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page, Route

    from fixtures.served import Served

pytestmark = [
    pytest.mark.needs_browser,
    pytest.mark.skipif(find_browser() is None, reason="needs_browser: chromium is not installed"),
]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    assert execute(["report", str(write_sample(folder / "night shift"))]) == 0
    return folder


@pytest.fixture(scope="module")
def server(results: Path) -> Iterator[Served]:
    with served(str(results)) as started:
        yield started


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsers() as started:
        yield started


@pytest.fixture
def page(browser: Browser, server: Served) -> Iterator[Page]:
    with browsing(browser, viewport={"width": 1280, "height": 900}) as opened:
        opened.goto(server.base)
        opened.click("tbody a")
        opened.wait_for_url("**/results/*")
        yield opened


def open_list(page: Page, server: Served) -> None:
    """Open the list with the first sentences of reports, which the server reads after the first answer."""
    page.goto(server.base)
    end = time.monotonic() + 20
    while not page.locator("tbody .verdict").count():
        assert time.monotonic() < end
        page.wait_for_timeout(200)
        page.reload()


def test_a_key_on_a_heading_keeps_the_focus_there(page: Page) -> None:
    page.click("nav >> text=Findings")
    for state in ("ascending", "descending"):
        page.focus("th:nth-child(2) a")
        page.keyboard.press("Enter")
        page.wait_for_selector(f"th:nth-child(2)[aria-sort={state}]")
        assert page.evaluate("document.activeElement.closest('th')?.cellIndex") == 1


def test_the_latest_of_two_quick_choices_stays(page: Page) -> None:
    page.click("nav >> text=Cells")
    page.click("tbody a")
    names = page.locator("[name=metric] option").all_inner_texts()
    slow, quick = names[1], names[2]
    held: list[Route] = []
    page.route(
        lambda address: parse_qs(urlsplit(address).query).get("metric") == [slow],
        lambda route: held.append(route),  # noqa: PLW0108 - playwright cannot take a built-in
    )
    page.select_option("[name=metric]", slow)
    page.wait_for_timeout(300)
    page.select_option("[name=metric]", quick)
    page.wait_for_selector(f"#region a[href$='metric={quick}']")
    for route in held:
        with suppress(Exception):  # the page may have given it up
            route.continue_()
    page.wait_for_timeout(500)
    assert held
    assert parse_qs(urlsplit(page.url).query)["metric"] == [quick]
    assert page.locator(f"#region a[href$='metric={quick}']").count() == 1
    assert page.input_value("[name=metric]") == quick


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_what_was_measured_first(browser: Browser, server: Served, scheme: str) -> None:
    with browsing(browser, viewport={"width": 320, "height": 700}, color_scheme=scheme) as phone:
        open_list(phone, server)
        row = phone.locator("tbody tr").first
        boxes: list[Any] = [row.locator(name).bounding_box() for name in (".title a", ".found", ".state")]
        assert all(box and box["x"] >= 0 and box["x"] + box["width"] <= 320 for box in boxes)
        assert [box["y"] for box in boxes] == sorted(box["y"] for box in boxes)
        started = row.locator("td:nth-child(2)").bounding_box()
        assert started is not None
        assert started["y"] >= boxes[1]["y"] + boxes[1]["height"]
        frame = phone.locator(".table-frame").first
        assert frame.evaluate("frame => frame.scrollWidth <= frame.clientWidth")
        chip = row.locator(".verdict")
        assert chip.evaluate("chip => getComputedStyle(chip).marginBottom") == "0px", (
            "lines stay evenly apart"
        )
        assert phone.get_by_role("cell").count() >= 7, "a row that looks like a card is still a row"


@pytest.mark.parametrize("width", [390, 768, 900])
def test_the_list_shows_every_field_without_scrolling(browser: Browser, server: Served, width: int) -> None:
    with browsing(browser, viewport={"width": width, "height": 900}) as page:
        page.goto(server.base)
        frame = page.locator(".table-frame").first
        assert frame.evaluate("frame => frame.scrollWidth <= frame.clientWidth")
        for box in (page.locator(f"tbody tr {part}").first.bounding_box() for part in (".state", ".found")):
            assert box
            assert box["x"] + box["width"] <= width


def test_a_phone_shows_what_is_known_of_a_running_study(browser: Browser, tmp_path: Path) -> None:
    plan = make_plan(cells=2, blocks=4)
    place = tmp_path / "results" / "running"
    place.mkdir(parents=True)
    plan.write(place / "plan.json")
    with Ledger(place / LEDGER_NAME, plan.id) as ledger:
        record(ledger, 0, 1000)
    with (
        claimed(place),
        served(str(place.parent)) as server,
        browsing(browser, viewport={"width": 320, "height": 700}) as phone,
    ):
        phone.goto(server.base)
        phone.click("tbody a")
        frame = phone.locator("[aria-label='Medians so far']")
        assert frame.evaluate("frame => frame.scrollWidth <= frame.clientWidth")


def test_a_link_with_a_token_may_be_followed_from_another_site(
    browser: Browser, results: Path, tmp_path: Path
) -> None:
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with (
        served(str(results), "--host", "0.0.0.0") as guarded,  # noqa: S104 - what is tested
        ThreadingHTTPServer(("127.0.0.1", 0), handler) as elsewhere,
    ):
        (tmp_path / "mail.html").write_text(f"<!doctype html><a href='{guarded.address}'>results</a>")
        threading.Thread(target=elsewhere.serve_forever, daemon=True).start()
        # Another name of this machine is another site for a browser.
        page = browser.new_page()
        page.goto(f"http://localhost:{elsewhere.server_port}/mail.html")
        page.click("text=results")
        page.wait_for_selector("h1 >> text=Results")
        assert "token" not in page.url
        assert page.reload().status == 200  # type: ignore[union-attr]
        page.close()
        elsewhere.shutdown()
