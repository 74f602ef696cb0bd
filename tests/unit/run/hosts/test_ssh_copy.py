"""What hosts send back: copied as far as it is written, and never further than the folder of the part."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from steelyard.record.placed.journal import JOURNAL_NAME
from steelyard.record.provenance import PROVENANCE_NAME
from steelyard.record.trace_folder import TRACES_NAME
from steelyard.run.executor.run_files import files_name
from steelyard.run.hosts import ssh_copy
from steelyard.run.hosts.ssh_copy import copy_part
from steelyard.run.hosts.ssh_session import HostAwayError, HostRefusedError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from steelyard.run.hosts.ssh_session import Session

START = "n1.0123abcd"


class There:
    """A host whose files are a dictionary, and which may say anything."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files
        self.said: dict[str, list[str]] = {}
        self.reads_left = 1000
        self.asked: list[tuple[str, int, int]] = []

    def ask(self, verb: str, what: str) -> list[str]:
        return self.said.get(verb) or list(getattr(self, f"_{verb}")(f"{what}/"))

    def read(self, name: str, begin: int, size: int) -> bytes:
        self.reads_left -= 1
        if self.reads_left < 0:
            message = "gone"
            raise HostAwayError(message)
        self.asked.append((name, begin, size))
        return self.files[name][begin : begin + size]

    def _starts(self, part: str) -> Iterator[str]:
        folders = set()
        for name, content in self.files.items():
            if not name.startswith(f"{part}starts/"):
                continue
            path = name.removeprefix(f"{part}starts/")
            if path.count("/") == 1:
                yield f"{len(content)} {path}"
            elif "/traces/" in path:
                folders.add(path.rpartition("/")[0])
        yield from (f"d {folder}" for folder in folders)

    def _files(self, folder: str) -> Iterator[str]:
        for name, content in self.files.items():
            if name.startswith(folder) and "/" not in name.removeprefix(folder):
                yield f"{len(content)} {name.removeprefix(folder)}"


@pytest.fixture
def part(tmp_path: Path) -> Path:
    folder = tmp_path / "placed" / "part-0001"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def there() -> There:
    begin = f"part-0001/starts/{START}"
    return There(
        {
            f"{begin}/journal.jsonl": b"line\n" * 100,
            f"{begin}/provenance.json": b"{}",
            f"{begin}/traces/000001.01/a b.csv": b"x" * 5000,
            f"{begin}/traces/000001.01/-c": b"",
            f"{begin}/traces/000002.01/a b.csv": b"y" * 3,
            f"{begin}/logs/run.log": b"said\n",
            "part-0001/output.txt": b"0123456789" * 10_000,
            "part-0001/alive": b"1\n",
        }
    )


def copy(there: There, part: Path, *, is_over: bool = False) -> None:
    copy_part(cast("Session", there), part, is_over=is_over)


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def test_names_are_those_of_the_record_stage() -> None:
    assert (ssh_copy.JOURNAL, ssh_copy.PROVENANCE) == (JOURNAL_NAME, PROVENANCE_NAME)
    assert ssh_copy.TRACES == TRACES_NAME
    for batch, attempt in ((1, 1), (123_456_789, 1000)):
        assert ssh_copy._OF_RUN.fullmatch(files_name(batch, attempt))


def test_all_of_a_part_that_is_over_comes(there: There, part: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssh_copy, "CHUNK_BYTES", 7)
    copy(there, part, is_over=True)
    expected = {name.removeprefix("part-0001/"): content for name, content in there.files.items()}
    del expected["alive"]
    expected["output.txt"] = expected["output.txt"][-ssh_copy.TAIL_BYTES :]
    assert files_of(part) == expected


def test_only_what_is_new_comes(there: There, part: Path) -> None:
    copy(there, part)
    assert not (part / "output.txt").exists()
    there.asked.clear()
    copy(there, part)
    assert there.asked == []
    there.files[f"part-0001/starts/{START}/journal.jsonl"] += b"more\n"
    copy(there, part)
    assert there.asked == [(f"part-0001/starts/{START}/journal.jsonl", 500, 5)]


def test_a_provenance_that_is_written_again_meanwhile_comes_whole_or_later(there: There, part: Path) -> None:
    name, here = f"part-0001/starts/{START}/provenance.json", part / "starts" / START / "provenance.json"
    for before, now in (
        (b'{"a": 1}', b'{"a": 1, "b": 2}'),
        (b'{"a": 1, "b": 2}', b'{"a": 1, "b": 2, "c": 3}'),
    ):
        known = here.read_bytes() if here.exists() else None
        there.files[name] = before + b" "
        there.said["starts"] = list(there._starts("part-0001/"))
        there.files[name] = now
        copy(there, part)
        assert (here.read_bytes() if here.exists() else None) == known
        there.said.clear()
        copy(there, part)
        assert here.read_bytes() == now


@pytest.mark.parametrize("reads", range(12))
def test_wherever_it_stops_files_of_runs_come_before_the_journal_and_it_goes_on(
    there: There, part: Path, reads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ssh_copy, "CHUNK_BYTES", 1000)
    there.reads_left = reads
    try:
        copy(there, part)
    except HostAwayError:
        start = part / "starts" / START
        if (start / "journal.jsonl").exists():
            assert {path.name for path in (start / "traces").glob("0*")} == {"000001.01", "000002.01"}
            assert (start / "provenance.json").exists()
        for folder in (start / "traces").glob("0*"):
            assert all(path.stat().st_size in {0, 3, 5000} for path in folder.iterdir())
    there.reads_left = 1000
    copy(there, part)
    found = files_of(part)
    assert found == {
        name.removeprefix("part-0001/"): content
        for name, content in there.files.items()
        if "/starts/" in name and "/logs/" not in name
    }


@pytest.mark.parametrize(
    ("verb", "line"),
    [
        ("starts", "5 ../../../../tmp/x/journal.jsonl"),
        ("starts", "5 /etc/journal.jsonl"),
        ("starts", "5 .hidden/journal.jsonl"),
        ("starts", "5 a\0b/journal.jsonl"),
        ("starts", f"d {START}/traces/.."),
        ("starts", f"d {START}/traces/../../000001.01"),
        ("starts", f"d {START}/other/000001.01"),
        ("starts", f"d {START}/traces/{'1' * 300}"),
        ("starts", f"-1 {START}/journal.jsonl"),
        ("starts", f"x {START}/journal.jsonl"),
        ("starts", f"{1 << 40} {START}/journal.jsonl"),
        ("starts", f"{'9' * 5000} {START}/journal.jsonl"),
        ("starts", f"{1 << 30} {START}/provenance.json"),
        ("files", "5 ../../x"),
        ("files", "5 .."),
        ("files", "5 "),
        ("files", "5 a/b"),
        ("files", "5 a\0b"),
        ("files", f"5 {'a' * 256}"),
        ("files", f"{1 << 33} a"),
        ("files", "\u0661 a"),
    ],
)
def test_what_leads_out_or_has_no_bound_is_refused(there: There, part: Path, verb: str, line: str) -> None:
    there.said[verb] = [line]
    before = {path for path in part.parents[1].rglob("*") if not path.is_relative_to(part)}
    with pytest.raises(HostRefusedError):
        copy(there, part, is_over=True)
    assert {path for path in part.parents[1].rglob("*") if not path.is_relative_to(part)} == before
    assert not list(part.rglob("journal.jsonl"))


def test_too_many_starts_and_files_are_refused(there: There, part: Path) -> None:
    there.said["starts"] = [f"5 n{number}/journal.jsonl" for number in range(ssh_copy.MOST_STARTS + 1)]
    with pytest.raises(HostRefusedError, match="began a part 257 times"):
        copy(there, part)
    del there.said["starts"]
    there.said["files"] = [f"5 n{number}" for number in range(ssh_copy.MOST_FILES + 1)]
    with pytest.raises(HostRefusedError, match="has 10001 files"):
        copy(there, part)


def test_what_is_not_of_a_start_is_left_there(there: There, part: Path) -> None:
    there.said["starts"] = [f"5 {START}/other.json"]
    copy(there, part)
    assert files_of(part) == {}
