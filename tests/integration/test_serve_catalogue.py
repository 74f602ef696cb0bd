"""Pages over a catalogue whose server stops and comes back."""

from __future__ import annotations

import os
import pwd
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fixtures.postgresql import missing, server_programs
from fixtures.postgresql import served as database
from fixtures.served import asked, served
from steelyard.catalogue import Catalogue

pytest.importorskip("starlette", reason="needs the extra `serve`")

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.needs_postgres,
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
]


def stop(folder: Path) -> None:
    """Stop the server in a folder, as its owner."""
    programs = server_programs()
    assert programs is not None
    user = (folder / "data").owner() if os.geteuid() == 0 else None
    words = [programs / "pg_ctl", "-D", folder / "data", "stop", "-m", "fast"]
    subprocess.run(words, check=True, capture_output=True, user=user, cwd=folder)


@contextmanager
def started(folder: Path) -> Iterator[None]:
    """Start a server in the folder of another that has ended."""
    programs = server_programs()
    assert programs is not None
    owner = pwd.getpwnam((folder / "data").owner())
    user = owner.pw_uid if os.geteuid() == 0 else None
    words = [programs / "postgres", "-D", folder / "data", "-k", folder, "-h", "", "-F"]
    server = subprocess.Popen(words, stderr=subprocess.DEVNULL, user=user, cwd=folder)
    try:
        while subprocess.run([programs / "pg_isready", "-q", "-h", folder], check=False).returncode:
            time.sleep(0.05)
        yield
    finally:
        server.terminate()
        server.wait()


@pytest.mark.long("a server of PostgreSQL starts twice, and one of pages")
@pytest.mark.timeout(120)
def test_pages_say_that_the_catalogue_is_away_and_come_back_with_it() -> None:
    with database() as address:
        folder = Path(address.partition("host=")[2])
        with Catalogue.at(address):
            pass
        with served("--catalogue", address) as pages:
            assert asked(pages.port, "/").status == 200
            stop(folder)
            for target in ("/", "/results/0123456789", "/compare?result=0123456789&result=abcdef0123"):
                answer = asked(pages.port, target)
                assert answer.status == 503, target
                assert b"cannot use the catalogue" in answer.body
            with started(folder):
                assert asked(pages.port, "/").status == 200
                assert asked(pages.port, "/results/0123456789").status == 404
