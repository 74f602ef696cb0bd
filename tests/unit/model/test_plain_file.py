"""Whatever a name leads to, its bytes are given whole or a reason in words: nothing waits, nothing grows."""

from __future__ import annotations

import os
import re
import socket
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from steelyard.model import plain_file
from steelyard.model.plain_file import read_plain_file

if TYPE_CHECKING:
    from collections.abc import Callable


def pipe(path: Path) -> None:
    os.mkfifo(path)


def unix_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


def larger_than_any_memory(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 43)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (pipe, "it is a pipe; write what it gives to a file"),
        (unix_socket, "it is a socket"),
        (Path.mkdir, "Is a directory"),
        (lambda path: path.symlink_to(path), "Too many levels of symbolic links"),
        (lambda path: path.symlink_to("/dev/zero"), "it is a device, not a file"),
        (larger_than_any_memory, "it is larger than the memory of this machine"),
        (lambda path: None, "No such file or directory"),
    ],
)
def test_what_is_no_file_is_refused_with_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None], reason: str
) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    make(Path("x"))
    with pytest.raises(OSError, match=re.escape(reason)) as caught:
        read_plain_file(Path("x"))
    assert caught.value.filename == "x"
    assert (caught.value.strerror or "").startswith(reason)


def test_a_file_that_may_not_be_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"1")
    path.chmod(0)
    nobody = 65534 if os.geteuid() == 0 else os.geteuid()
    before = os.geteuid()
    os.seteuid(nobody)
    try:
        with pytest.raises(PermissionError):
            read_plain_file(path)
    finally:
        os.seteuid(before)


@pytest.mark.parametrize("content", [b"", b"\0" * 5000, b"a,b\n1,2\n"])
def test_a_file_is_given_whole_also_through_a_link(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x").write_bytes(content)
    (tmp_path / "y").symlink_to("x")
    assert read_plain_file(tmp_path / "y") == content


@pytest.mark.parametrize("mode", ["ab", "wb"], ids=["grown", "cut"])
def test_a_file_that_is_written_to_meanwhile_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"1\n2\n")
    states: list[os.stat_result] = []
    look = os.fstat

    def look_again(descriptor: int) -> os.stat_result:
        if states:
            with path.open(mode) as file:
                file.write(b"3")
        states.append(look(descriptor))
        return states[-1]

    monkeypatch.setattr("steelyard.model.plain_file.os.fstat", look_again)
    with pytest.raises(OSError, match="it was written to while it was read"):
        read_plain_file(path)


def written_to(path: Path, parts: list[bytes], pause_s: float) -> threading.Thread:
    """Write parts to a pipe, with a pause before each."""

    def write() -> None:
        time.sleep(pause_s)
        with path.open("wb", buffering=0) as file:
            for part in parts:
                time.sleep(pause_s)
                file.write(part)

    thread = threading.Thread(target=write)
    thread.start()
    return thread


@pytest.mark.parametrize("parts", [[b"a,b\n", b"1,2\n"], [b"x" * 300_000], []])
@pytest.mark.parametrize("pause_s", [0.0, 0.1])
def test_a_pipe_is_read_until_its_writer_ends(tmp_path: Path, parts: list[bytes], pause_s: float) -> None:
    pipe(tmp_path / "x")
    thread = written_to(tmp_path / "x", parts, pause_s)
    assert read_plain_file(tmp_path / "x", may_be_pipe=True) == b"".join(parts)
    thread.join()


def test_a_pipe_that_nobody_writes_to_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_file, "PATIENCE_S", 0.1)
    pipe(tmp_path / "x")
    with pytest.raises(OSError, match="it is a pipe that nobody writes to; start what writes to it first"):
        read_plain_file(tmp_path / "x", may_be_pipe=True)


def test_a_pipe_that_gives_more_than_memory_holds_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("steelyard.model.plain_file.os.sysconf", lambda _: 100)
    pipe(tmp_path / "x")
    writing = os.open(tmp_path / "x", os.O_RDWR)
    try:
        os.write(writing, b"x" * 20_000)
        with pytest.raises(OSError, match="it is larger than the memory of this machine"):
            read_plain_file(tmp_path / "x", may_be_pipe=True)
    finally:
        os.close(writing)
