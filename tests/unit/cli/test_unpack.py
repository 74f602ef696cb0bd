from __future__ import annotations

import contextlib
import os
import re
import resource
import stat
import struct
import tarfile
import tempfile
import zipfile
import zlib
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.cli import execute
from steelyard.errors import DataError
from steelyard.share.package.archive import part_of_text, write_archive
from steelyard.share.package.check import bounded_memory
from steelyard.share.package.entry_names import fault_of_name
from steelyard.share.package.unpack import BOUNDS, Bounds, require_package, unpack

if TYPE_CHECKING:
    from collections.abc import Iterator


def archive_of(*names: str, content: bytes = b"content") -> bytes:
    into = BytesIO()
    with zipfile.ZipFile(into, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            entry = zipfile.ZipInfo("x", (1980, 1, 1, 0, 0, 0))
            entry.filename = name  # as it is: the constructor would cut it at a null byte
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return into.getvalue()


def archive_with_mode(mode: int) -> bytes:
    into = BytesIO()
    with zipfile.ZipFile(into, "w") as archive:
        entry = zipfile.ZipInfo("entry")
        entry.create_system = 3
        entry.external_attr = mode << 16
        archive.writestr(entry, b"/etc/passwd")
    return into.getvalue()


@pytest.fixture
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for temporary files, in a folder that nothing else may be written to."""
    private = tmp_path / "outer" / "tmp"
    private.mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(private))
    yield private
    assert list(private.iterdir()) == [], "what was unpacked must be gone"
    assert list((tmp_path / "outer").iterdir()) == [private], "nothing may be written outside"


def refusal(content: bytes, surroundings: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Verify a package that must be refused, and give what was said."""
    package = surroundings.parent.parent / "package.zip"
    package.write_bytes(content)
    assert execute(["verify", str(package)]) == 5
    said = capsys.readouterr()
    assert said.out == ""
    assert "hint:" in said.err
    assert "Traceback" not in said.err
    return said.err


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("../../x", "it leads out of the folder"),
        ("a/../../x", "it leads out of the folder"),
        ("/etc/x", "it is an absolute path"),
        ("C:/x", "it begins with the letter of a drive"),
        ("a\\..\\x", "it contains a backslash"),
        ("a\x00b", "it contains a control character"),
        ("a\nb", "it contains a control character"),
        ("a\x1b[2Jb", "it contains a control character"),
        ("a\u202eb", "it contains a control character"),
        ("a//b", "one of its parts is empty"),
        ("./a", "one of its parts is empty"),
        ("a" * 256, "one of its parts is longer than 255 bytes"),
        ("a/" * 600 + "b", "it is longer than 1024 bytes"),
    ],
)
def test_a_name_that_is_not_allowed_is_refused(
    name: str, reason: str, surroundings: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refusal(archive_of("good", name), surroundings, capsys)
    assert reason in said
    assert all(character.isprintable() for character in said.replace("\n", ""))


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (("a/x", "a/X"), "differs in case only"),
        (("A/x", "a/y"), "differs in case only"),
        (("stra\u00dfe", "STRASSE"), "differs in case only"),
        (
            ("e\u0301", "\u00e9"),
            "spells the same letters by other signs of Unicode: it has U+0065 U+0301, this one U+00E9",
        ),
        (("a", "a/b"), "is a file as well"),
        (("a/b", "a"), "it is a folder as well"),
    ],
)
def test_names_that_collide_are_refused(
    names: tuple[str, ...], reason: str, surroundings: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reason in refusal(archive_of(*names), surroundings, capsys)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_occurs_twice_is_refused(surroundings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "it occurs twice" in refusal(archive_of("a", "b", "a"), surroundings, capsys)


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        (stat.S_IFLNK | 0o777, "is a symbolic link"),
        (stat.S_IFCHR | 0o666, "is a device"),
        (stat.S_IFBLK | 0o666, "is a device"),
        (stat.S_IFIFO | 0o666, "is a named pipe"),
        (stat.S_IFSOCK | 0o666, "is a socket"),
        (stat.S_IFDIR | 0o755, "is a folder without `/`"),
    ],
)
def test_what_is_no_plain_file_is_refused(
    mode: int, reason: str, surroundings: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reason in refusal(archive_with_mode(mode), surroundings, capsys)


def test_a_bomb_is_refused_by_its_ratio(surroundings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bomb = archive_of("zeros", content=bytes(8 << 20))
    assert "more than 200 times" in refusal(bomb, surroundings, capsys)


def test_a_bomb_inside_is_a_file_like_any_other(tmp_path: Path) -> None:
    bomb = archive_of("zeros", content=bytes(8 << 20))
    package = tmp_path / "p.zip"
    package.write_bytes(archive_of("inner.zip", content=bomb))
    (tmp_path / "into").mkdir()
    unpack(package, tmp_path / "into")
    assert [path.name for path in (tmp_path / "into").iterdir()] == ["inner.zip"]


@pytest.mark.parametrize(
    ("bounds", "reason"),
    [(Bounds(total_bytes=13), "its files have 14 bytes"), (Bounds(entries=1), "it has 2 entries")],
)
def test_totals_beyond_the_bounds_are_refused(bounds: Bounds, reason: str, tmp_path: Path) -> None:
    package = tmp_path / "p.zip"
    package.write_bytes(archive_of("a", "b"))
    (tmp_path / "into").mkdir()
    with pytest.raises(DataError, match=reason):
        unpack(package, tmp_path / "into", bounds)
    assert list((tmp_path / "into").iterdir()) == []


def central_header(content: bytes) -> int:
    return content.index(b"PK\x01\x02")


def changed(content: bytes, at: int, form: str, value: int) -> bytes:
    whole = bytearray(content)
    struct.pack_into(form, whole, at, value)
    return bytes(whole)


def test_an_encrypted_entry_is_refused(surroundings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = archive_of("a")
    content = changed(changed(content, central_header(content) + 8, "<H", 1), 6, "<H", 1)
    assert "is encrypted" in refusal(content, surroundings, capsys)


@pytest.mark.parametrize(
    ("at", "form", "value", "reason"),
    [
        (30, "<B", ord("b"), "its name"),
        (8, "<H", 0, "its method"),
        (14, "<I", 1, "its size"),
        (18, "<I", 1, "its size"),
        (22, "<I", 1, "its size"),
    ],
)
def test_a_header_that_contradicts_the_directory_is_refused(
    at: int, form: str, value: int, reason: str, surroundings: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refusal(changed(archive_of("a"), at, form, value), surroundings, capsys)
    assert f"is not what the directory says: {reason}" in said


def test_entries_that_share_bytes_are_refused(surroundings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = archive_of("a", "b")
    second = content.index(b"PK\x01\x02", central_header(content) + 1)
    shared = changed(content, second + 42, "<I", 0)
    assert "shares bytes with another one" in refusal(shared, surroundings, capsys)


@pytest.mark.parametrize("kept", [0.2, 0.6, 0.95])
def test_a_truncated_file_is_refused(
    kept: float, surroundings: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = archive_of(*(f"file-{number}" for number in range(20)))
    assert "is refused" in refusal(content[: int(kept * len(content))], surroundings, capsys)


def test_a_tar_archive_is_refused(surroundings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    into = BytesIO()
    with tarfile.open(fileobj=into, mode="w:gz") as archive:
        entry = tarfile.TarInfo("../../x")
        archive.addfile(entry)
    assert "it is not a ZIP archive" in refusal(into.getvalue(), surroundings, capsys)


def bomb_of(count: int, content: bytes) -> bytes:
    """Give an archive of equal files; their content is deflated once."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(content) + packer.flush()
    sizes = struct.pack("<3I", zlib.crc32(content), len(packed), len(content))
    into, directory = bytearray(), bytearray()
    for number in range(count):
        name = b"folder/%d" % number
        place, fixed = len(into), b"\0\0\x08\0\0\0\x21\0"
        into += b"PK\x03\x04\x14\0" + fixed + sizes + struct.pack("<2H", len(name), 0) + name + packed
        directory += b"PK\x01\x02\x14\0\x14\0" + fixed + sizes
        directory += struct.pack("<5H2I", len(name), 0, 0, 0, 0, 0, place) + name
    end = struct.pack("<4H2IH", 0, 0, count, count, len(directory), len(into), 0)
    return bytes(into + directory + b"PK\x05\x06" + end)


@pytest.mark.parametrize(
    ("count", "content"),
    [
        (3000, bytes(1 << 20)),
        (300, bytes(range(256)) * 4096),
        (20_000, bytes(64 << 10)),
        (65, bytes(1 << 20)),
    ],
)
def test_a_bomb_of_many_files_is_refused_as_a_whole(
    count: int, content: bytes, surroundings: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refusal(bomb_of(count, content), surroundings, capsys)
    assert "more than 50 times, the limit above 64 MiB" in said
    assert "nothing of it was written" in said


def test_a_bomb_of_folders_is_refused(surroundings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    deep = "/".join("ab" * 40)
    assert "more than 32 folders" in refusal(archive_of(deep), surroundings, capsys)
    names = [f"{number}/{'a/' * 30}b" for number in range(20)]
    package = surroundings.parent.parent / "folders.zip"
    package.write_bytes(archive_of(*names))
    (surroundings.parent.parent / "into").mkdir()
    with pytest.raises(DataError, match="it has 640 files and folders, more than 600"):
        unpack(package, surroundings.parent.parent / "into", Bounds(entries=600))


def test_a_directory_that_memory_cannot_hold_is_refused(tmp_path: Path) -> None:
    package = tmp_path / "p.zip"
    package.write_bytes(archive_of(*(f"{number:0200d}" for number in range(100))))
    (tmp_path / "into").mkdir()
    with pytest.raises(DataError, match=r"its directory has .* more than 10 KiB"):
        unpack(package, tmp_path / "into", Bounds(directory_bytes=10 << 10))


def test_a_size_that_is_a_lie_writes_no_more_than_it_says(tmp_path: Path) -> None:
    content = archive_of("zeros", content=bytes(8 << 20))
    at, header = central_header(content), 0
    for place, form in ((at + 24, "<I"), (header + 22, "<I")):
        content = changed(content, place, form, 1 << 19)
    package = tmp_path / "p.zip"
    package.write_bytes(content)
    (tmp_path / "into").mkdir()
    with pytest.raises(DataError, match="is refused"):
        unpack(package, tmp_path / "into")
    assert sum(path.stat().st_size for path in (tmp_path / "into").rglob("*")) <= 1 << 19


def test_what_is_packed_can_be_unpacked_however_it_shrinks(tmp_path: Path) -> None:
    text = "0" * (1 << 20)
    write_archive(tmp_path / "p.zip", [part_of_text(f"part-{number}", text) for number in range(80)])
    assert (tmp_path / "p.zip").stat().st_size * BOUNDS.whole_ratio >= 80 << 20
    (tmp_path / "into").mkdir()
    unpack(tmp_path / "p.zip", tmp_path / "into")
    assert len(list((tmp_path / "into").iterdir())) == 80


def test_a_table_that_holds_one_text_very_often_takes_no_more_memory_than_it_may(tmp_path: Path) -> None:
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(2000, dtype="int32")), ["a" * (1 << 20)])
    pq.write_table(pa.table({"x": column}), tmp_path / "x.parquet", compression="zstd", store_schema=False)
    assert (tmp_path / "x.parquet").stat().st_size < 1000
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with pytest.raises(MemoryError), bounded_memory(256 << 20):
        pq.read_table(tmp_path / "x.parquet", use_threads=False)
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("f_bavail", 1, r"64 MiB must stay free; the file system of .* has 4096 bytes left"),
        ("f_favail", 1, r"needs 3 inodes; the file system of .* has 1 left"),
    ],
)
def test_a_full_disk_is_named_before_anything_is_written(
    field: str,
    value: int,
    reason: str,
    surroundings: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    system = os.statvfs("/")
    names = [name for name in dir(system) if name.startswith("f_")]
    shown = {name: getattr(system, name) for name in names} | {"f_frsize": 4096, "f_files": 9, field: value}
    shown.setdefault("f_bavail", 1 << 40)
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(**shown))
    said = " ".join(refusal(archive_of("a/b", "a/c"), surroundings, capsys).split())
    assert re.search(reason, said)
    assert "TMPDIR" in said


@settings(deadline=None)
@given(st.text(min_size=1, max_size=40))
def test_a_name_that_is_allowed_stays_in_its_folder(name: str) -> None:
    if fault_of_name(name) is None:
        folder = Path("/folder/of/the/package")
        whole = folder / name
        assert whole != folder
        assert ".." not in whole.parts
        assert whole.is_relative_to(folder)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=8), st.data())
def test_changed_bytes_never_write_outside_nor_end_in_a_bug(
    changes: list[tuple[int, int]], data: st.DataObject
) -> None:
    names = [f"folder/{number}" for number in range(3)]
    content = bytearray(archive_of(*names, content=b"some content" * 20))
    for at, value in changes:
        content[at % len(content)] = value
    end = data.draw(st.integers(len(content) // 2, len(content)))
    with tempfile.TemporaryDirectory() as outer:
        package, into = Path(outer) / "p.zip", Path(outer) / "into"
        package.write_bytes(content[:end] if end % 3 == 0 else content)
        into.mkdir()
        with contextlib.suppress(DataError):
            unpack(package, into)
        assert {path.name for path in Path(outer).iterdir()} == {"p.zip", "into"}
        assert all(path.is_file() or path.is_dir() for path in into.rglob("*"))
        assert not any(path.is_symlink() for path in into.rglob("*"))


def with_extra(content: bytes) -> bytes:
    """Give an archive whose one entry hides text in an unknown field of its header in the directory."""
    into = BytesIO()
    with zipfile.ZipFile(into, "w") as archive:
        entry = zipfile.ZipInfo("x", (1980, 1, 1, 0, 0, 0))
        entry.extra = struct.pack("<2H", 0x6666, len(content)) + content
        archive.writestr(entry, b"content")
    return into.getvalue()


GOOD = archive_of("a/x", "b")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"#!/bin/sh\nid\nexit\n" + GOOD, "18 bytes before its first file belong to no file"),
        (GOOD + b"garbage", "it has a comment, or bytes behind its end"),
        (GOOD[:-2] + struct.pack("<H", 5) + b"hello", "it has a comment, or bytes behind its end"),
        (GOOD[:-14] + b"\xff" * 4 + GOOD[-10:], "its end does not count the 2 entries of its directory"),
        (GOOD[:-14] + struct.pack("<2H", 1, 1) + GOOD[-10:], "its end does not count the 2 entries"),
        (with_extra(b"#!/bin/sh"), "13 bytes beside its name that packages do not have"),
    ],
)
def test_bytes_that_belong_to_no_file_are_refused(
    content: bytes, reason: str, surroundings: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reason in refusal(content, surroundings, capsys)


def test_a_package_with_more_files_than_the_old_format_counts_is_unpacked(tmp_path: Path) -> None:
    into = BytesIO()
    with zipfile.ZipFile(into, "w") as archive:
        for number in range(65_600):
            archive.writestr(zipfile.ZipInfo(str(number), (1980, 1, 1, 0, 0, 0)), b"")
    (tmp_path / "many.zip").write_bytes(into.getvalue())
    require_package(tmp_path / "many.zip")


@pytest.mark.parametrize("size", [9, 1 << 17])
def test_bytes_behind_compressed_content_are_refused(
    size: int, surroundings: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = archive_of("a")
    header, packed = 30 + 1, len(zlib.compress(b"content", wbits=-15))
    directory = whole.index(b"PK\x01\x02")
    assert directory == header + packed
    content = bytearray(whole[:directory] + b"#" * size + whole[directory:])
    for at in (18, directory + size + 20):
        content[at : at + 4] = struct.pack("<I", packed + size)
    content[-6:-2] = struct.pack("<I", directory + size)
    said = refusal(bytes(content), surroundings, capsys)
    assert "bytes behind the compressed content of its entry `a` belong to no file" in said
