from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from steelyard.cli import execute
from steelyard.errors import DataError, UsageError
from steelyard.record.seal import hash_file
from steelyard.share.package.archive import part_of_text, write_archive
from steelyard.share.repository import fetching
from steelyard.share.repository.fetching import fetch, fetch_index
from steelyard.share.repository.index import SCHEMA, index_page, list_lines
from steelyard.share.repository.pace import Pace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOSTILE = "<script>alert(1)</script>\x1b[2J"


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and says nothing."""

    asked: tuple[str, ...] = ()

    def log_message(self, *_: object) -> None:
        return


class Continuing(Quiet):
    """Serves the rest of a file where it is asked for."""

    def do_GET(self) -> None:
        begin = int((self.headers.get("Range") or "bytes=0-")[6:-1])
        if not begin:
            super().do_GET()
            return
        type(self).asked += (f"{self.path} from {begin}",)
        with open(self.translate_path(self.path), "rb") as file:  # noqa: PTH123
            content = file.read()
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(content) - begin))
        self.end_headers()
        self.wfile.write(content[begin:])


class Leading(Quiet):
    """Sends everybody elsewhere."""

    target = ""

    def do_GET(self) -> None:
        self.send_response(302)
        self.send_header("Location", self.target)
        self.end_headers()


@pytest.fixture(autouse=True)
def _without_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with one real package, made for a stranger's eyes, and one file that is none."""
    base = tmp_path_factory.mktemp("repository")
    words = ["compare", "--out", str(base / "r"), "--runs-min", "8", "--runs-max", "8", "--budget", "2s"]
    assert execute([*words, "--report", "true", "sleep 0.002"]) in {0, 1}
    public = base / "public"
    public.mkdir()
    words = ["pack", str(base / "r"), "-o", str(public / "one.zip"), "--title", HOSTILE, "--unchecked"]
    assert execute([*words, "--author", "Ada Lovelace (0000-0002-1825-0097)", "--licence", "CC-BY-4.0"]) == 0
    (public / "none.zip").write_bytes(b"no package")
    assert execute(["repository", "index", str(public)]) == 1
    return public


def served(folder: Path, handler: type[Quiet]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(params=[Quiet, Continuing])
def address(folder: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """A plain static server, and one that knows ranges."""
    yield from served(folder, request.param)


def test_the_index_says_what_is_offered(folder: Path) -> None:
    (listed,) = fetch_index(str(folder))
    assert (listed.name, listed.study, listed.licence) == ("one.zip", "compare", "CC-BY-4.0")
    assert listed.authors == ("Ada Lovelace",)
    assert listed.question == "Which command takes more?"
    assert listed.sha256 == hash_file(folder / "one.zip")
    assert listed.byte_count == (folder / "one.zip").stat().st_size
    assert sum(listed.verdicts.values()) <= listed.findings


def test_what_packages_say_reaches_nobody_as_a_command(folder: Path) -> None:
    packages = fetch_index(str(folder))
    page = (folder / "index.html").read_text()
    assert page == index_page(packages)
    assert "<script" not in page
    assert "\x1b" not in "".join(list_lines(packages))


def test_a_package_is_fetched_from_a_server(address: str, tmp_path: Path) -> None:
    path = tmp_path / "got.zip"
    assert execute(["repository", "list", address, "--json"]) == 0
    assert execute(["repository", "fetch", address, "one", "-o", str(path)]) == 0
    assert execute(["verify", str(path)]) == 0
    assert [each.name for each in tmp_path.iterdir()] == ["got.zip"]


def test_an_interrupted_fetch_is_continued(
    address: str, folder: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    content = (folder / "one.zip").read_bytes()
    listed = fetch_index(address)[0]
    part = tmp_path / f".got.zip.{listed.sha256[:16]}.part"
    part.write_bytes(content[:5000])
    Continuing.asked = ()
    assert fetch(address, "one.zip", tmp_path / "got.zip").read_bytes() == content
    knows_ranges = "Continuing" in request.node.name
    assert Continuing.asked == (("/one.zip from 5000",) if knows_ranges else ())


def offered(folder: Path, **changed: object) -> None:
    """Write an index whose one package is not what it says."""
    (folder / "one.zip").write_bytes(b"the bytes that are there")
    entry = {
        "name": "one.zip",
        "title": "",
        "study": "",
        "question": "",
        "date": "",
        "device": "",
        "licence": "",
        "authors": [],
        "plan_id": "",
        "sha256": hash_file(folder / "one.zip"),
        "byte_count": 24,
        "findings": 0,
    }
    document = {"schema": SCHEMA, "packages": [{**entry, **changed}]}
    (folder / "index.json").write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"sha256": "0" * 64}, "has the hash"),
        ({"byte_count": 10}, "is larger than the 10 bytes"),
        ({"byte_count": 30}, "ended after 24 of 30 bytes"),
    ],
)
def test_what_is_not_what_the_index_says_is_not_kept(
    changed: dict[str, object], reason: str, tmp_path: Path
) -> None:
    (tmp_path / "public").mkdir()
    offered(tmp_path / "public", **changed)
    with pytest.raises(DataError, match=reason):
        fetch(str(tmp_path / "public"), "one.zip", tmp_path / "got.zip")
    assert not (tmp_path / "got.zip").exists()


def test_an_archive_with_a_program_before_it_is_not_kept(tmp_path: Path) -> None:
    public = tmp_path / "public"
    public.mkdir()
    write_archive(tmp_path / "whole.zip", [part_of_text("x", "content")])
    offered(public)
    (public / "one.zip").write_bytes(b"#!/bin/sh\nexit\n" + (tmp_path / "whole.zip").read_bytes())
    listed = json.loads((public / "index.json").read_text())
    size = (public / "one.zip").stat().st_size
    listed["packages"][0] |= {"sha256": hash_file(public / "one.zip"), "byte_count": size}
    (public / "index.json").write_text(json.dumps(listed))
    with pytest.raises(DataError, match=r"`one\.zip` is refused: 15 bytes before its first file"):
        fetch(str(public), "one.zip", tmp_path / "got.zip")
    assert [each.name for each in tmp_path.iterdir() if "got" in each.name] == []


@pytest.mark.parametrize("name", ["../one.zip", "/etc/passwd", "a/b.zip", "a\\b.zip", "C:x.zip", "a\nb"])
def test_an_index_that_leads_elsewhere_is_refused(name: str, tmp_path: Path) -> None:
    offered(tmp_path, name=name)
    with pytest.raises(DataError, match="not allowed"):
        fetch_index(str(tmp_path))


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://127.0.0.1/index.json", "data:text/plain,x"])
def test_a_redirect_to_anything_but_a_server_is_not_followed(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Leading, "target", target)
    for address in served(tmp_path, Leading):
        with pytest.raises(DataError, match="is not followed"):
            fetch_index(address)


@pytest.mark.parametrize(
    "place", ["file:///etc", "ftp://host/x", "http://", "https://me:secret@host/", "data://x/y"]
)
def test_other_addresses_are_refused(place: str) -> None:
    with pytest.raises(UsageError) as error:
        fetch_index(place)
    assert error.value.hint
    assert "secret" not in error.value.message


def test_an_absent_server_and_an_absent_package_are_named(address: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"it offers: `one\.zip`"):
        fetch(address, "two", tmp_path / "two.zip")
    with pytest.raises(DataError, match="answers 404"):
        fetch_index(f"{address}/nowhere")
    with pytest.raises(DataError, match="cannot fetch `"):
        fetch_index("http://127.0.0.1:1/")


def test_an_endless_index_is_not_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "LARGEST_INDEX_BYTES", 10)
    (tmp_path / "index.json").write_bytes(b" " * 100)
    with pytest.raises(DataError, match="more than 10 bytes"):
        fetch_index(str(tmp_path))


class Dripping(Quiet):
    """Sends one byte now and then, at the place that is asked of it, and never ends."""

    where = ""

    def do_GET(self) -> None:
        begin = {
            "status": b"",
            "header": b"HTTP/1.0 200 OK\r\nServer: ",
            "continue": b"",
            "body": b"HTTP/1.0 200 OK\r\nContent-Length: 100000\r\n\r\n{",
            "chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            "trailer": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
        }[self.where]
        again = {
            "status": b"H",
            "continue": b"HTTP/1.1 100 Continue\r\n\r\n",
            "chunk": b"1\r\n \r\n",
            "trailer": b"a: b\r\n",
        }.get(self.where, b" ")
        with contextlib.suppress(OSError):
            self.wfile.write(begin)
            for _ in range(2000):
                self.wfile.write(again)
                time.sleep(0.01)


@pytest.mark.parametrize("where", ["status", "header", "continue", "body", "chunk", "trailer"])
def test_a_server_that_sends_a_byte_now_and_then_is_given_up(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Dripping, "where", where)
    begun = time.monotonic()
    for address in served(tmp_path, Dripping):
        with pytest.raises(DataError, match=r"too slow|cannot be fetched"):
            fetch_index(address, Pace(window_s=0.3))
        assert time.monotonic() - begun < 2


def test_a_slow_index_is_given_up_though_it_never_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Dripping, "where", "body")
    for address in served(tmp_path, Dripping):
        with pytest.raises(DataError, match="the transfer took longer than allowed"):
            fetch_index(address, Pace(window_s=0.1, slowest_bytes=1, index_s=0.5))


class Flooding(Quiet):
    """Sends marks between chunks without end, and no content."""

    def do_GET(self) -> None:
        with contextlib.suppress(OSError):
            self.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n")
            while True:
                self.wfile.write(b"a: b\r\n" * 10_000)


def test_a_flood_of_what_is_no_content_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "LARGEST_INDEX_BYTES", 1 << 16)
    for address in served(tmp_path, Flooding):
        with pytest.raises(DataError, match="sends more than the answer may contain"):
            fetch_index(address, Pace(surplus_bytes=1 << 10))


def test_a_slow_package_is_given_up_and_continued_later(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stalling(Continuing):
        def copyfile(self, source: Any, outputfile: Any) -> None:
            if self.path.endswith(".zip"):
                outputfile.write(source.read(7000))
                with contextlib.suppress(OSError):
                    for _ in range(200):
                        outputfile.write(source.read(1))
                        time.sleep(0.01)
            else:
                super().copyfile(source, outputfile)

    for address in served(folder, Stalling):
        with pytest.raises(DataError, match="too slow") as error:
            fetch(address, "one", tmp_path / "got.zip", pace=Pace(window_s=0.4))
        assert "continued" in str(error.value.hint)
        (part,) = tmp_path.iterdir()
        assert part.stat().st_size >= 7000
        assert fetch(address, "one", tmp_path / "got.zip").read_bytes() == (folder / "one.zip").read_bytes()


@pytest.mark.parametrize(
    ("byte_count", "reason"), [(10**18, "has 64 GiB at most"), (60 << 30, "must stay free")]
)
def test_a_size_that_nothing_can_hold_is_refused_before_anything_is_asked(
    byte_count: int, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = SimpleNamespace(f_frsize=4096, f_bavail=1 << 20, f_files=0, f_favail=0)
    monkeypatch.setattr(os, "statvfs", lambda _: small)
    (tmp_path / "public").mkdir()
    offered(tmp_path / "public", byte_count=byte_count)
    with pytest.raises(DataError, match=reason):
        fetch(str(tmp_path / "public"), "one.zip", tmp_path / "got.zip")
    assert not (tmp_path / "got.zip").exists()


def test_an_index_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "index.json")
    with pytest.raises(DataError, match="is not a file"):
        fetch_index(str(tmp_path))
