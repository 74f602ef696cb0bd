"""Reports of strangers in a browser: none of their scripts is executed, and nobody else is asked."""

from __future__ import annotations

import re
import socket
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pytest

from fixtures.browser import find_browser
from fixtures.served import asked, browsers, served
from fixtures.stability_sample import write_sample
from steelyard.cli import execute

pytest.importorskip("starlette", reason="needs the extra `serve`")
pytest.importorskip("playwright", reason="needs playwright")

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

    from fixtures.served import Served

pytestmark = [
    pytest.mark.needs_browser,
    pytest.mark.skipif(find_browser() is None, reason="needs_browser: chromium is not installed"),
]

ATTACK = """
<meta http-equiv="refresh" content="1;url={there}/refreshed">
<link rel="stylesheet" href="{there}/style"><link rel="prefetch" href="{there}/prefetched">
<link rel="modulepreload" href="{there}/module"><link rel="prerender" href="{there}/prerendered">
<img src="{there}/image"><iframe src="{there}/frame"></iframe><object data="{there}/object"></object>
<video src="{there}/video"></video><form id="form" action="{there}/form"><button>x</button></form>
<script>
document.title = "executed";
const leak = (name) => "{there}/" + name;
const connection = new RTCPeerConnection({{ iceServers: [{{ urls: "stun:127.0.0.1:{stun}" }}] }});
connection.createDataChannel("x");
connection.createOffer().then((offer) => connection.setLocalDescription(offer));
fetch(leak("fetch")).catch(() => 0); navigator.sendBeacon(leak("beacon")); new Image().src = leak("picture");
try {{ new WebSocket("ws://127.0.0.1:{port}/socket"); }} catch {{}}
try {{ open(leak("window")); }} catch {{}}
setTimeout(() => {{ document.getElementById("form").submit(); location.href = leak("location"); }}, 500);
</script>
"""


class Listener:
    """What comes in at a port of TCP and one of UDP."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", 0))
        self.port, self.stun = self.tcp.getsockname()[1], self.udp.getsockname()[1]

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def attack(self) -> str:
        return ATTACK.format(there=self.address, port=self.port, stun=self.stun)

    def hear(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self.tcp.accept()
                with connection, suppress(OSError):
                    connection.settimeout(1)
                    self.heard.append(connection.recv(300).partition(b"\r\n")[0].decode())
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    def hear_datagrams(self) -> None:
        with suppress(OSError):
            while data := self.udp.recv(2000):
                self.heard.append(f"datagram of {len(data)} bytes")


@contextmanager
def listening() -> Iterator[Listener]:
    found = Listener()
    threads = [threading.Thread(target=each, daemon=True) for each in (found.hear, found.hear_datagrams)]
    for thread in threads:
        thread.start()
    try:
        yield found
    finally:
        for each in (found.tcp, found.udp):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_sample(tmp_path_factory.mktemp("results") / "own")
    assert execute(["report", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def server(own: Path) -> Iterator[Served]:
    with served(str(own.parent)) as started:
        yield started


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsers() as started:
        yield started


@pytest.fixture(scope="module")
def result(server: Served) -> str:
    return "/results/" + asked(server.port, "/").body.decode().partition('name="result" value="')[2][:10]


@pytest.mark.long("the chart engine is read")
def test_scripts_of_this_version_draw_a_report(browser: Browser, server: Served, result: str) -> None:
    page = browser.new_page()
    for path in (result, f"{result}/report"):
        page.goto(server.base + path, wait_until="domcontentloaded")
        frame = page.frame_locator("iframe.report")
        frame.locator("[data-charts=drawn]").wait_for(state="attached", timeout=60_000)
        assert not page.locator("text=are not drawn here").count()
        assert page.frames[1].evaluate("origin") == "null", "a report must not reach the pages around it"
    page.close()


def test_a_report_that_is_not_there_is_said_and_not_framed(server: Served, result: str, own: Path) -> None:
    hidden = (own / "report.html").rename(own / "elsewhere.html")
    try:
        answer = asked(server.port, f"{result}/report")
    finally:
        hidden.rename(own / "report.html")
    assert answer.status != 200
    assert "report.html` does not exist" in re.sub("</?code>", "`", answer.body.decode())
    assert "<iframe" not in answer.body.decode()


@pytest.mark.long("a browser waits for what a report might do")
@pytest.mark.parametrize("kind", ["a page of its own", "behind the head of ours", "in the head of ours"])
def test_a_strangers_report_reaches_nobody(
    browser: Browser, server: Served, own: Path, result: str, kind: str
) -> None:
    path = own / "report.html"
    written = path.read_text()
    page = browser.new_page()
    try:
        with listening() as listener:
            attack = listener.attack()
            if kind == "a page of its own":
                path.write_text(f"<!doctype html><title>report</title>{attack}<p>shown")
            elif kind == "behind the head of ours":
                path.write_text(written.replace("<body>", f"<body>{attack}<p>shown</p>", 1))
            else:
                head = re.sub("(<meta http-equiv=.Content-Sec[^>]*>)", "<!-- \\1 -->", written, count=1)
                path.write_text(
                    head.replace("<title>", f"{attack}<title>", 1).replace("<body>", "<body>shown", 1)
                )
            for address in (result, f"{result}/report", f"{result}/report.html"):
                page.goto(server.base + address)
                page.wait_for_timeout(2500)
                assert page.url == server.base + address
                shown = page.frames[0] if address.endswith("html") else page.frames[1]
                text = shown.inner_text("body")  # before its address: it may be on its way to another one
                if shown.url == "chrome-error://chromewebdata/":
                    assert kind != "a page of its own", "only what might have scripts may lead its frame away"
                    continue
                assert shown.url == f"{server.base}{result}/report.html"
                assert "shown" in text
                assert shown.title() != "executed"
            assert listener.heard == []
    finally:
        path.write_text(written)
        page.close()


def test_a_report_alone_in_its_window_has_no_scripts(server: Served, result: str) -> None:
    alone = asked(server.port, f"{result}/report.html").head.lower()
    assert "content-security-policy: sandbox allow-downloads; default-src 'none'; style-src" in alone
    assert "script" not in alone
    framed = asked(
        server.port,
        f"{result}/report.html",
        Sec_Fetch_Dest="iframe",
        Sec_Fetch_Site="same-origin",
        Sec_Fetch_Mode="navigate",
    ).head.lower()
    assert "content-security-policy: sandbox allow-scripts allow-downloads; default-src 'none'; " in framed
    assert "script-src 'sha256-" in framed
    assert "allow-same-origin" not in framed
    assert "unsafe-inline" not in framed.partition("style-src")[0]
