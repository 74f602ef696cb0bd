"""A live view of a study that is damaged, exchanged, or watched by too many."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import signal
import socket
import sqlite3
import time
from contextlib import ExitStack, closing, suppress
from typing import TYPE_CHECKING

import pytest

from fixtures.outcomes import make_plan
from fixtures.served import asked, served
from steelyard.record.ledger import LEDGER_NAME, Ledger
from steelyard.record.provenance import Provenance, write_provenance
from unit.serve.test_live import record

pytest.importorskip("starlette", reason="needs the extra `serve`")

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from fixtures.served import Served

PLAN = make_plan(cells=2, blocks=4)
MOST_VIEWERS = 40


class Viewer:
    """A browser that follows a study."""

    def __init__(self, server: Served, identifier: str) -> None:
        self._connection = socket.create_connection(("127.0.0.1", server.port), timeout=20)
        self._request = f"GET /results/{identifier}/events HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n"
        self.said = b""

    def ask(self) -> None:
        self._connection.sendall(self._request.encode())

    def until(self, pattern: bytes) -> None:
        """Read until something new is said."""
        end = time.monotonic() + 20
        while not re.search(pattern, self.said):
            assert time.monotonic() < end, self.said[-400:]
            piece = self._connection.recv(65_536)
            assert piece, self.said[-400:]
            self.said += piece
        self.said = b""

    def status(self) -> int:
        while b"\r\n" not in self.said:
            self.said += self._connection.recv(65_536)
        return int(self.said.split(b" ")[1])

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Give a folder in which a study is running, for all who look."""
    place = tmp_path / "results" / "running"
    place.mkdir(parents=True)
    PLAN.write(place / "plan.json")
    with Ledger(place / LEDGER_NAME, PLAN.id) as ledger:
        record(ledger, 0, 1000)
    held = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(held, fcntl.LOCK_EX)
    yield place
    os.close(held)


@pytest.fixture
def server(folder: Path) -> Iterator[Served]:
    with served(str(folder.parent)) as started:
        yield started


@pytest.fixture
def identifier(server: Served) -> str:
    return asked(server.port, "/").body.decode().partition('name="result" value="')[2][:10]


@pytest.fixture
def view(server: Served, identifier: str) -> Iterator[Callable[..., Viewer]]:
    """Give what opens a view."""
    with ExitStack() as opened:

        def follow(*, asks: bool = True) -> Viewer:
            viewer = opened.enter_context(closing(Viewer(server, identifier)))
            if asks:
                viewer.ask()
            return viewer

        yield follow


def test_a_viewer_is_told_of_damage_and_sees_what_comes_after_it(
    server: Served, identifier: str, folder: Path, view: Callable[..., Viewer]
) -> None:
    whole = (folder / LEDGER_NAME).read_bytes()
    viewer = view()
    viewer.until(rb"1 of 8")
    with closing(sqlite3.connect(folder / LEDGER_NAME)) as ledger:
        ledger.execute("INSERT INTO disturbance (batch, attempt, reasons) VALUES (1, 1, '{')")
        ledger.commit()
    viewer.until(rb"notice bad")
    assert asked(server.port, f"/results/{identifier}/live").status == 422
    another = view()
    another.until(rb"notice bad")
    (folder / LEDGER_NAME).write_bytes(whole)
    for each in (viewer, another):
        each.until(rb"1 of 8")


def test_another_study_in_the_folder_ends_the_view(folder: Path, view: Callable[..., Viewer]) -> None:
    viewer = view()
    viewer.until(rb"1 of 8")
    folder.rename(folder.with_name("away"))
    folder.mkdir()
    shutil.copy(folder.with_name("away") / "plan.json", folder)
    write_provenance(folder, Provenance("stability", "another", 1))
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(held, fcntl.LOCK_EX)
    viewer.until(rb"event: ended")
    os.close(held)


def test_no_more_viewers_than_can_be_served_however_they_come(view: Callable[..., Viewer]) -> None:
    viewers = [view(asks=False) for _ in range(3 * MOST_VIEWERS)]
    for viewer in viewers:
        viewer.ask()
    statuses = [viewer.status() for viewer in viewers]
    assert statuses.count(200) <= MOST_VIEWERS
    while statuses[-1] == 200 or len(statuses) == len(viewers):
        statuses.append(view().status())
    assert statuses.count(200) == MOST_VIEWERS
    for viewer in viewers:
        viewer.close()
    end = time.monotonic() + 10
    while True:
        with suppress(OSError):
            again = view()
            if again.status() == 200:
                break
        assert time.monotonic() < end, "who leaves makes room"
        time.sleep(0.2)


def test_a_server_with_viewers_ends_without_a_word(server: Served, view: Callable[..., Viewer]) -> None:
    viewers = [view() for _ in range(3)]
    for viewer in viewers:
        viewer.until(rb"1 of 8")
    server.process.send_signal(signal.SIGINT)
    server.process.wait(20)
    _, errors = server.process.communicate()
    assert "Traceback" not in errors
    assert "ERROR" not in errors
