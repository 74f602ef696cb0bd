"""The guest's files: an archive any cpio reads, a kernel unpacked to a program."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from steelyard.errors import CapabilityError
from steelyard.run.guest.initramfs import Entry, guest_entries, is_static_program, pack
from steelyard.run.guest.kernel import ELF, find_image, release, unpack
from steelyard.run.guest.machine import counter_khz
from steelyard.run.programs import launcher_path, workloads_path


def _image() -> bytes:
    try:
        return find_image().read_bytes()
    except CapabilityError as error:
        pytest.skip(error.message)


@pytest.mark.skipif(shutil.which("cpio") is None, reason="needs the program `cpio` to check the archive")
def test_another_program_reads_the_archive(tmp_path: Path) -> None:
    archive = pack([Entry.folder("a"), Entry.file("a/b", b"hello", 0o755), Entry.link("c", "a/b")])
    subprocess.run(["cpio", "-id", "--quiet"], input=archive, cwd=tmp_path, check=True)
    assert (tmp_path / "a/b").read_bytes() == b"hello"
    assert (tmp_path / "a/b").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "c").readlink() == Path("a/b")


def test_the_same_entries_give_the_same_bytes() -> None:
    entries = [Entry.file("x", b"1"), Entry.character_device("n", (1, 3))]
    assert pack(entries) == pack(entries)
    assert len(pack(entries)) % 4 == 0


def test_the_guest_starts_the_launcher() -> None:
    entries = {entry.path: entry for entry in guest_entries(launcher_path().parent, workloads_path())}
    assert entries["init"].content == b"/steelyard/bin/steelyard-launch"
    assert entries["steelyard/bin/steelyard-launch"].content == launcher_path().read_bytes()


def test_static_programs_are_told_from_others() -> None:
    assert is_static_program(launcher_path().read_bytes())
    assert not is_static_program(Path("/bin/sh").resolve().read_bytes())
    assert not is_static_program(b"#!/bin/sh\n")


@pytest.mark.needs_vm
def test_the_kernel_is_unpacked_to_a_program() -> None:
    image = _image()
    assert release(image)[0].isdigit()
    assert unpack(image)[:4] == ELF


def test_what_is_no_kernel_is_refused() -> None:
    with pytest.raises(ValueError, match="not a bzImage"):
        unpack(bytes(4096))


def test_the_counter_is_measured_alike_twice() -> None:
    first, second = counter_khz(), counter_khz()
    if first is None or second is None:
        pytest.skip("needs a time stamp counter")
    assert abs(first - second) / first < 1e-3
