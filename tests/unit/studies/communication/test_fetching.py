from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from steelyard.studies.communication.fetching import fetched

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WRITE = 'echo here > "$1/first"; [ ! -d "$2$1" ] || echo there > "$2$1/second"; exit 3'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "a batch's folder"
    found.mkdir()
    return found


def other_host(tmp_path: Path) -> tuple[Path, tuple[str, ...]]:
    """Another file system: each path that a command names lies below a folder."""
    root = tmp_path / "other"
    root.mkdir()
    enter = tmp_path / "enter"
    enter.write_text(
        f"""#!/usr/bin/env python3
import subprocess, sys
root = {str(root)!r}
words = [root + word if word.startswith("/") else word for word in sys.argv[1:]]
sys.exit(subprocess.run(words, start_new_session=True).returncode)
"""
    )
    enter.chmod(0o755)
    return root, (str(enter),)


def execute(folder: Path, enter: tuple[str, ...], root: Path | str) -> subprocess.CompletedProcess[str]:
    script = fetched(("sh", "-c", WRITE, "sh", str(folder), str(root)), folder, ((), enter))
    return subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False, timeout=30)


def test_what_another_host_wrote_is_fetched_and_removed_there(tmp_path: Path, folder: Path) -> None:
    root, enter = other_host(tmp_path)
    done = execute(folder, enter, root)
    assert (done.returncode, done.stderr) == (3, "")
    assert {each.name: each.read_text() for each in folder.iterdir()} == {
        "first": "here\n",
        "second": "there\n",
    }
    assert not (root / folder.relative_to("/")).exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_killed_script_leaves_nothing_on_another_host(
    tmp_path: Path, folder: Path, number: signal.Signals
) -> None:
    root, enter = other_host(tmp_path)
    theirs = root / folder.relative_to("/")
    command = ("sh", "-c", 'echo there > "$1/second"; touch "$2/begun"; exec sleep 60')
    script = fetched((*command, "sh", str(theirs), str(tmp_path)), folder, ((), enter))
    with subprocess.Popen(["sh", "-c", script], start_new_session=True) as process:
        wait_for((tmp_path / "begun").exists)
        assert (theirs / "second").exists()
        os.kill(process.pid, number) if number == signal.SIGKILL else os.killpg(process.pid, number)
        wait_for(lambda: not theirs.exists())
        os.killpg(process.pid, signal.SIGKILL)


def wait_for(condition: Callable[[], bool], limit_s: float = 20.0) -> None:
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_on_a_shared_file_system_nothing_is_removed(folder: Path) -> None:
    done = execute(folder, ("env",), "")
    assert (done.returncode, done.stderr) == (3, "")
    assert sorted(each.name for each in folder.iterdir()) == ["first", "second"]


def test_the_folder_of_somebody_else_is_left_alone(tmp_path: Path, folder: Path) -> None:
    root, enter = other_host(tmp_path)
    theirs = root / folder.relative_to("/")
    theirs.mkdir(parents=True)
    (theirs / "precious").write_text("kept")
    done = execute(folder, enter, root)
    assert done.returncode == 1
    assert f"cannot create the folder {folder} on host 2" in done.stderr
    assert (theirs / "precious").read_text() == "kept"
    assert [each.name for each in folder.iterdir()] == []


def test_a_folder_that_is_not_here_is_no_success(tmp_path: Path) -> None:
    done = execute(tmp_path / shlex.quote("not there"), ("env",), "")
    assert done.returncode == 1
