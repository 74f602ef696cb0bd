"""Whatever a name leads to, its bytes are given whole or a reason in words: nothing waits, nothing grows."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

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
