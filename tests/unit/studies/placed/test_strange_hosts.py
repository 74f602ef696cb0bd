"""What a host recorded that cannot be used, beside what others recorded."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import pytest

from fixtures.outcomes import make_outcome, make_plan
from steelyard.errors import RunError, UsageError
from steelyard.record.ledger import LEDGER_NAME, Ledger
from steelyard.record.placed.hosts import clock_of
from steelyard.record.placed.journal import JOURNAL_NAME, Journal
from steelyard.record.provenance import (
    PROVENANCE_NAME,
    begin_provenance,
    read_provenance,
    write_provenance,
)
from steelyard.run.hosts.clocks import ClockReading, keep_readings
from steelyard.run.hosts.engine import Pending
from steelyard.run.hosts.placement import ENGINE_NAME
from steelyard.run.progress import Silent
from steelyard.studies.placed import driver
from steelyard.studies.placed.absorbing import Absorber, with_hosts
from steelyard.studies.placed.parts import read_part, write_parts

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def record(part: Path, *batches: int, host_id: str) -> Path:
    start = part / "starts" / f"{host_id}.00000000"
    start.mkdir(parents=True)
    write_provenance(start, begin_provenance(make_plan(), ["x"], host_id=host_id))
    with Journal(start / JOURNAL_NAME) as journal:
        for batch in batches:
            number = journal.begin_attempt(batch)
            journal.record(batch, number, 0, make_outcome(1))
            journal.complete(batch, number)
    return start


@pytest.mark.parametrize("what", ["a batch of another part", "a damaged line", "no provenance"])
def test_a_host_that_cannot_be_used_is_said_once_and_the_others_count(tmp_path: Path, what: str) -> None:
    plan = make_plan()
    first, second = write_parts(tmp_path, plan.id, [(0, 1), (2, 3)])
    strange = record(first, *((0, 2) if what == "a batch of another part" else (0,)), host_id="h1")
    if what == "a damaged line":
        with (strange / JOURNAL_NAME).open("ab") as file:
            file.write(b"%08x {}\n" % zlib.crc32(b"{}"))
    if what == "no provenance":
        (strange / PROVENANCE_NAME).write_text("{")
    record(second, 2, 3, host_id="h2")
    said: list[str] = []
    with Ledger(tmp_path / LEDGER_NAME, plan.id) as ledger:
        absorber = Absorber(tmp_path, ledger, said.append)
        usable = {2, 3} if what == "no provenance" else {0, 2, 3}
        assert set(absorber.absorb([first.name, second.name])) == usable
        assert absorber.absorb([first.name, second.name], are_over=True) == []
        assert ledger.completed_batches() == usable
    (words,) = said
    assert str(strange) in words
    assert words.endswith("what is not taken yet is placed again")
    if what == "no provenance":
        found = with_hosts(begin_provenance(plan, ["x"], host_id="here"), tmp_path)
        assert set(found.hosts) == {"h2"}


def test_a_line_with_a_wrong_checksum_is_named_when_nobody_writes_any_more(tmp_path: Path) -> None:
    """A line that is cut off at the end is no damage: it was being written when the host died."""
    plan = make_plan()
    (part,) = write_parts(tmp_path, plan.id, [(0, 1, 2)])
    journal = record(part, 0, 1, 2, host_id="h1") / JOURNAL_NAME
    lines = journal.read_bytes().splitlines(keepends=True)
    place = sum(map(len, lines[:4]))
    lines[4] = lines[4].replace(b"iteration", b"iterbtion")
    journal.write_bytes(b"".join(lines) + lines[0][:9])
    said: list[str] = []
    with Ledger(tmp_path / LEDGER_NAME, plan.id) as ledger:
        absorber = Absorber(tmp_path, ledger, said.append)
        assert absorber.absorb([part.name]) == [0]
        assert said == []
        for _ in range(2):
            assert absorber.absorb([part.name], are_over=True) == []
    words = f"`{journal.relative_to(tmp_path)}` is damaged: the line at byte {place} has a wrong checksum; "
    assert said == [f"{words}5 lines from there are not used; what is not taken yet is placed again"]
    found = with_hosts(begin_provenance(plan, ["x"], host_id="here"), tmp_path, absorber.remarks)
    assert found.notes == (f"{words}5 lines from there were not used, and what they held was placed again",)
    journal.write_bytes(b"".join(lines[:3]) + lines[3][:9])
    with Ledger(tmp_path / "cut.sqlite", plan.id) as ledger:
        absorber = Absorber(tmp_path, ledger, said.append)
        assert absorber.absorb([part.name], are_over=True) == [0]
    assert len(said) == 1


def test_times_in_a_journal_bound_the_clock_of_its_host(tmp_path: Path) -> None:
    """From the second look on: what was there at the first may have been written long before."""
    plan = make_plan()
    old, new, asked = write_parts(tmp_path, plan.id, [(0,), (1,), (2,)])
    record(old, 0, host_id="h1")
    keep_readings(asked, [ClockReading(10**9, 3 * 10**9, 2 * 10**9)])
    with Ledger(tmp_path / LEDGER_NAME, plan.id) as ledger:
        absorber = Absorber(tmp_path, ledger, lambda _: None)
        absorber.absorb([old.name])
        absorber.placing([new.name, asked.name])
        for part, host in ((new, "h2"), (asked, "h3")):
            record(part, 2 if part is asked else 1, host_id=host)
        absorber.absorb([old.name, new.name, asked.name])
    found = with_hosts(begin_provenance(plan, ["x"], host_id="here"), tmp_path)
    first, second, third = (clock_of(found.hosts[f"h{number}"]) for number in (1, 2, 3))
    assert first is None
    assert second is not None
    assert second.readings == 2
    assert -60 < second.low_s <= 0 <= second.high_s < 60
    assert third is not None
    assert (third.readings, third.low_s, third.high_s) == (1, 1, 2)


class Spoiling:
    """A host that hands everything back at once, the first time with a damaged line."""

    is_here = False
    names: tuple[str, ...] = ()
    size = width = 1

    def __init__(self) -> None:
        self.placed: list[tuple[int, ...]] = []

    def place(self, parts: Sequence[Path], _hosts: Sequence[str] = (), /) -> None:
        for part in parts:
            journal = record(part, *read_part(part).batches, host_id="h1") / JOURNAL_NAME
            if not self.placed:
                journal.write_bytes(journal.read_bytes().replace(b"complete", b"compiete", 1))
            self.placed.append(read_part(part).batches)

    def pending(self) -> Pending:
        return Pending(frozenset())

    def cancel(self) -> None:
        pass


def test_what_a_damaged_line_held_is_placed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "LOOK_S", 0.0)
    monkeypatch.setattr(driver, "SETTLE_S", 0.0)
    plan, engine = make_plan(), Spoiling()
    plan.write(tmp_path / "plan.json")
    write_provenance(tmp_path, begin_provenance(plan, ["x"], host_id="here"))
    with Ledger(tmp_path / LEDGER_NAME, plan.id) as ledger:
        driver.execute_placed(plan, tmp_path, ledger, engine, Silent())
        assert ledger.completed_batches() == {batch.number for batch in plan.batches}
    assert engine.placed[0] in engine.placed[1:]
    (note,) = read_provenance(tmp_path).notes
    assert "has a wrong checksum" in note


def test_a_folder_of_a_part_that_was_not_written_is_no_hindrance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever was making it died: nobody was given the part."""
    monkeypatch.setattr(driver, "LOOK_S", 0.0)
    monkeypatch.setattr(driver, "SETTLE_S", 0.0)
    plan, engine = make_plan(), Spoiling()
    plan.write(tmp_path / "plan.json")
    write_provenance(tmp_path, begin_provenance(plan, ["x"], host_id="here"))
    (tmp_path / "placed/part-0001").mkdir(parents=True)
    with Ledger(tmp_path / LEDGER_NAME, plan.id) as ledger:
        driver.execute_placed(plan, tmp_path, ledger, engine, Silent())
        assert ledger.completed_batches() == {batch.number for batch in plan.batches}


class Idle(Spoiling):
    """A host that takes parts and does nothing."""

    def place(self, parts: Sequence[Path], _hosts: Sequence[str] = (), /) -> None:
        self.placed += [read_part(part).batches for part in parts]


LIMIT = "slurmstepd-n1: error: *** JOB 11 ON n1 CANCELLED AT 2026-11-29T07:42:35 DUE TO TIME LIMIT ***"
INTERRUPTED = """
stopping; interrupt once more to stop at once
error: interrupted; everything finished so far is in `part-0007`

hint: repeat the command when this is repaired
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("error: no such program\nhint: install it\n", "no such program"),
        (f"{LIMIT}\n{INTERRUPTED}", LIMIT),
        (INTERRUPTED, "interrupted; everything finished so far is in `part-0007`"),
    ],
)
def test_what_a_host_said_last_is_why_it_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    monkeypatch.setattr(driver, "LOOK_S", 0.0)
    monkeypatch.setattr(driver, "SETTLE_S", 0.0)
    plan, root = make_plan(), tmp_path / "placed"
    plan.write(tmp_path / "plan.json")
    write_provenance(tmp_path, begin_provenance(plan, ["x"], host_id="here"))
    root.mkdir()
    (root / "slurm-1_0.txt").write_text(text)
    (root / ENGINE_NAME).write_text("slurm:main")
    with Ledger(tmp_path / LEDGER_NAME, plan.id) as ledger, pytest.raises(RunError) as caught:
        driver.execute_placed(plan, tmp_path, ledger, Idle(), Silent())
    assert caught.value.message == f"3 placements in a row completed no batch; the last host said: {said}"


class Named(Spoiling):
    """Hosts that parts ask for by name."""

    names = ("h1", "h2")

    def __init__(self) -> None:
        super().__init__()
        self.asked: dict[tuple[int, ...], tuple[str, ...]] = {}

    def place(self, parts: Sequence[Path], hosts: Sequence[str] = (), /) -> None:
        for part in parts:
            record(part, *read_part(part).batches, host_id="h1")
            self.asked[read_part(part).batches] = tuple(hosts)


def test_a_part_has_runs_of_the_same_hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "LOOK_S", 0.0)
    monkeypatch.setattr(driver, "SETTLE_S", 0.0)
    plan, engine = make_plan(), Named()
    plan.write(tmp_path / "plan.json")
    write_provenance(tmp_path, begin_provenance(plan, ["x"], host_id="here"))
    of_cell = {cell.number: ("h1", "h2") if cell.number % 2 else ("h2",) for cell in plan.cells}
    with Ledger(tmp_path / LEDGER_NAME, plan.id) as ledger:
        driver.execute_placed(
            plan, tmp_path, ledger, engine, Silent(), hosts_of=lambda cell: of_cell[cell.number]
        )
        assert ledger.completed_batches() == {batch.number for batch in plan.batches}
        for batches, hosts in engine.asked.items():
            assert {of_cell[plan.batches[batch].cell] for batch in batches} == {hosts}
        assert len(set(engine.asked.values())) == len(set(of_cell.values())) > 1


def test_a_host_that_is_not_there_is_refused_before_anything_is_placed(tmp_path: Path) -> None:
    plan, engine = make_plan(), Named()
    plan.write(tmp_path / "plan.json")
    write_provenance(tmp_path, begin_provenance(plan, ["x"], host_id="here"))
    with (
        Ledger(tmp_path / LEDGER_NAME, plan.id) as ledger,
        pytest.raises(UsageError, match="needs the host `h9`, which `--on` does not offer") as caught,
    ):
        driver.execute_placed(plan, tmp_path, ledger, engine, Silent(), hosts_of=lambda _cell: ("h1", "h9"))
    assert caught.value.hint == "hosts there: h1, h2"
    assert engine.asked == {}
