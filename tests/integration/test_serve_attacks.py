"""What a stranger, another page, or a damaged folder can make of the server: nothing."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import socket
import time
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import pytest

from fixtures.browser import find_browser
from fixtures.served import asked, browsers, browsing, exchange, served
from fixtures.stability_sample import write_sample
from steelyard.cli import execute
from steelyard.record.labels import Labels, write_labels

pytest.importorskip("starlette", reason="needs the extra `serve`")

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fixtures.served import Served

SECRET = "nobody outside may read this"  # noqa: S105 - the content of a file
HOSTILE = "<img src=x onerror=window.hacked=1><script>window.hacked=1</script>"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("top")
    (top / "secret.txt").write_text(SECRET)
    made = write_sample(top / "results" / HOSTILE.replace("/", "_"))
    assert execute(["report", str(made)]) == 0
    write_labels(made, Labels(note=HOSTILE))
    return top / "results"


@pytest.fixture(scope="module")
def server(results: Path) -> Iterator[Served]:
    with served(str(results)) as started:
        yield started


@pytest.fixture(scope="module")
def result(server: Served) -> str:
    body = asked(server.port, "/").body.decode()
    return body.partition('name="result" value="')[2][:10]


@pytest.mark.long("the first computation starts its processes")
@pytest.mark.parametrize(
    "target",
    [
        "/static/../../secret.txt",
        "/static/..%2f..%2fsecret.txt",
        "/static/%2e%2e/%2e%2e/secret.txt",
        "/static/..%252f..%252fsecret.txt",
        "/static/..%c0%af..%c0%afsecret.txt",
        "/static/....//....//secret.txt",
        "/static/..\\..\\secret.txt",
        "/static/%00",
        "/charts/../../secret.txt",
        "/results/..%2f..%2fsecret.txt",
        "/results/%2e%2e",
        "/results/{id}/../../../secret.txt",
        "/results/{id}/report.html/../../../secret.txt",
        "/results/{id}/tables/..%2f..%2f..%2fsecret.txt",
        "/results/{id}/plan.json",
        "//etc/passwd",
        "/history?result=../secret.txt",
        "/history?result=/etc",
        "/compare?result=../&result=/etc/passwd",
        "/results/{id}/cells/-1",
        "/results/{id}/cells/99999999999999999999999999",
        "http://169.254.169.254/latest/meta-data",
    ],
)
def test_no_path_leads_out(server: Served, result: str, target: str) -> None:
    answer = asked(server.port, target.format(id=result))
    assert answer.status in {400, 404, 421, 422}
    assert SECRET.encode() not in answer.body
    assert b"root:" not in answer.body


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1",
        "127.0.0.1:1",
        "localhost.evil.example:{port}",
        "",
        "a b",
        "[::1",
        "x@127.0.0.1:{port}",
    ],
)
def test_a_strangers_name_for_this_machine_is_refused(server: Served, host: str) -> None:
    assert asked(server.port, "/", Host=host.format(port=server.port)).status in {400, 421}


def test_a_second_host_header_does_not_help(server: Served) -> None:
    request = (
        f"GET / HTTP/1.1\r\nHost: evil.example\r\nHost: 127.0.0.1:{server.port}\r\nConnection: close\r\n\r\n"
    )
    assert exchange(server.port, request.encode()).status in {400, 421}


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "https://127.0.0.1:{port}"},
        {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "no-cors", "Sec_Fetch_Dest": "image"},
        {"Sec_Fetch_Site": "same-site", "Sec_Fetch_Mode": "cors", "Sec_Fetch_Dest": "empty"},
        {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "iframe"},
    ],
)
def test_other_sites_get_nothing(server: Served, headers: dict[str, str]) -> None:
    named = {name: value.format(port=server.port) for name, value in headers.items()}
    assert asked(server.port, "/", **named).status == 403


def test_only_our_own_page_may_verify(server: Served, result: str) -> None:
    target, own = f"/results/{result}/verify", f"http://127.0.0.1:{server.port}"
    for origin in ("http://evil.example", "null", ""):
        assert asked(server.port, target, "POST", Origin=origin, Content_Length="0").status == 403
    assert asked(server.port, target, "POST", Content_Length="0").status == 403
    foreign = {"Origin": own, "Sec_Fetch_Site": "cross-site"}
    assert asked(server.port, target, "POST", Content_Length="0", **foreign).status == 403
    assert asked(server.port, target).status == 405
    assert (
        asked(server.port, "/results/0123456789/verify", "POST", Origin=own, Content_Length="0").status == 404
    )


def test_queries_and_heads_are_bounded(server: Served, result: str) -> None:
    assert asked(server.port, "/?text=" + "a" * 5000).status == 414
    assert asked(server.port, "/" + "a" * 5000).status == 414
    assert asked(server.port, "/?" + "&".join(f"a{n}=1" for n in range(100))).status == 400
    assert asked(server.port, "/?text=" + "a" * 200_000).status in {0, 400, 431}
    assert asked(server.port, "/", X="a" * 200_000).status in {0, 400, 431}
    assert asked(server.port, "/", "TRACE").status == 405
    assert asked(server.port, "/?page=" + "9" * 400).status == 200
    assert asked(server.port, "/?text=%00%ff%27%22;drop&study=%25&since=x").status == 400
    for day in ("0001-01-01", "9999-12-31"):
        assert asked(server.port, f"/?since={day}").status == 200
        assert asked(server.port, f"/?until={day}").status == 200
    assert asked(server.port, f"/results/{result}/findings?order=__class__&claim=../..&page=-5").status == 200


@pytest.mark.long("a browser opens every page")
def test_hostile_names_are_shown_and_never_executed(server: Served, result: str) -> None:
    if find_browser() is None:
        pytest.skip("needs_browser: chromium is not installed")
    pytest.importorskip("playwright", reason="needs playwright")
    paths = [
        "/",
        *(f"/results/{result}{part}" for part in ("", "/findings", "/cells", "/cells/0", "/provenance")),
    ]
    with browsers() as browser, browsing(browser) as page:
        for path in paths:
            page.goto(server.base + path)
            page.wait_for_load_state()
            assert page.evaluate("window.hacked === undefined"), path
            assert page.locator("main img:not(.drawn)").count() == 0, path
        page.goto(f"{server.base}/results/{result}/provenance")
        assert "<img src=x" in page.inner_text("main")


def test_answers_say_what_a_browser_may_do(server: Served, result: str) -> None:
    page = asked(server.port, "/").head.lower()
    assert "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'" in page
    assert "unsafe" not in page
    for line in ("x-content-type-options: nosniff", "cross-origin-resource-policy: same-origin"):
        assert line in page


@pytest.mark.long("a server of its own reads two results")
def test_links_that_lead_out_are_refused(results: Path, tmp_path: Path) -> None:
    folder = tmp_path / "linked"
    shutil.copytree(next(results.iterdir()), folder / "report")
    shutil.copytree(next(results.iterdir()), folder / "table")
    (folder / "report" / "report.html").unlink()
    (folder / "report" / "report.html").symlink_to(results.parent / "secret.txt")
    (folder / "table" / "findings.json").unlink()
    (folder / "table" / "findings.json").symlink_to(results.parent / "secret.txt")
    with served(str(folder)) as server:
        body = asked(server.port, "/").body.decode()
        for part in body.split('name="result" value="')[1:]:
            for tab in ("", "/report.html", "/findings", "/cells", "/provenance"):
                answer = asked(server.port, f"/results/{part[:10]}{tab}")
                assert SECRET.encode() not in answer.body
            assert b"leads out" in asked(server.port, f"/results/{part[:10]}/cells").body


@pytest.mark.long("a thousand connections wait for their end")
def test_a_thousand_silent_connections_leave_room_for_a_reader(server: Served) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    opened: list[socket.socket] = []
    try:
        for number in range(1000):
            connection = socket.create_connection(("127.0.0.1", server.port), timeout=20)
            if number % 2:
                connection.sendall(b"GET / HTTP/1.1\r\nHost: 12")
            opened.append(connection)
        begin = time.monotonic()
        assert asked(server.port, "/static/pages.css").status == 200
        assert time.monotonic() - begin < 5
        held = len(os.listdir(f"/proc/{server.process.pid}/fd"))  # noqa: PTH208 - names alone
        assert held < 300
    finally:
        for connection in opened:
            connection.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.long("a server of its own")
def test_beyond_this_machine_a_token_is_asked_for(results: Path) -> None:
    with served(str(results), "--host", "0.0.0.0") as server:  # noqa: S104 - what is tested
        token = parse_qs(urlsplit(server.address).query)["token"][0]
        assert len(token) >= 32
        assert asked(server.port, "/").status == 401
        assert asked(server.port, "/static/pages.js").status == 401
        for wrong in ("", token[:-1], token + "a", "%C3%A4", "a" * 32):
            assert asked(server.port, f"/?token={wrong}").status == 401
        entered = asked(server.port, f"/?token={token}&study=stability")
        assert entered.status == 303
        assert "location: /?study=stability" in entered.head
        cookie = entered.head.lower().partition("set-cookie: ")[2].partition("\r\n")[0]
        assert "httponly" in cookie
        assert "samesite=lax" in cookie
        assert token not in cookie
        shown = entered.head.partition("set-cookie: ")[2].partition(";")[0]
        assert asked(server.port, "/", Cookie=shown).status == 200
        assert asked(server.port, "/", Cookie=shown[:-1] + "0").status in {200, 401}
        assert asked(server.port, "/", Cookie=shown, Host=f"evil.example:{server.port}").status == 421
        assert asked(server.port, f"//evil.example/?token={token}").head.count("//evil.example") == 0


@pytest.mark.parametrize("token", ["short", "has a space in it", "a/b/c/d/e/f/g/h/i/j"])
def test_a_weak_token_is_refused(results: Path, token: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["serve", str(results), "--port", "0", "--token", token]) == 2
    assert "at least 16" in capsys.readouterr().err


@pytest.mark.long("a server reads each damage")
def test_a_folder_may_change_while_it_is_shown(results: Path, tmp_path: Path) -> None:
    folder = tmp_path / "changing"
    shutil.copytree(next(results.iterdir()), folder / "one")
    with served(str(folder)) as server:
        body = asked(server.port, "/").body.decode()
        identifier = body.partition('name="result" value="')[2][:10]
        pages = [
            f"/results/{identifier}{part}" for part in ("", "/report.html", "/findings", "/cells", "/cells/0")
        ]
        for damage in ("", "{", '{"schema": "steelyard/findings/1"}', "\0" * 1000):
            for name in ("findings.json", "provenance.json", "runs.parquet", "report.html"):
                (folder / "one" / name).write_text(damage)
            statuses = {asked(server.port, page).status for page in pages}
            assert statuses <= {200, 422}
        os.mkfifo(folder / "one" / "waits")
        assert asked(server.port, pages[3]).status == 422
        shutil.rmtree(folder / "one")
        assert {asked(server.port, page).status for page in pages[1:]} == {400}
        assert asked(server.port, "/").status == 200


def test_it_ends_with_its_processes(results: Path) -> None:
    with served(str(results)) as server:
        asked(server.port, "/")
        children = children_of(server.process.pid)
        assert children
        server.process.send_signal(signal.SIGINT)
        server.process.wait(20)
        end = time.monotonic() + 5  # one of them waits for the end of the server itself
        while any(map(is_alive, children)) and time.monotonic() < end:
            time.sleep(0.05)
        assert not [each for each in children if is_alive(each)]


def children_of(process: int) -> list[int]:
    with open(f"/proc/{process}/task/{process}/children", encoding="ascii") as file:  # noqa: PTH123 - of the kernel
        return [int(word) for word in file.read().split()]


def is_alive(process: int) -> bool:
    try:
        with open(f"/proc/{process}/stat", encoding="ascii") as file:  # noqa: PTH123 - of the kernel
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
