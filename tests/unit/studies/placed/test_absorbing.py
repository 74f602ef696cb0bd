"""How what hosts recorded comes into the ledger: in one commit a look, all or nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fixtures.outcomes import make_outcome, make_plan
from steelyard.errors import DataError
from steelyard.record.ledger import LEDGER_NAME, Ledger
from steelyard.record.placed.journal import JOURNAL_NAME, Journal, PlacedAttempt
from steelyard.record.provenance import begin_provenance, write_provenance
from steelyard.studies.placed.absorbing import Absorber
from steelyard.studies.placed.parts import write_parts

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def parts(tmp_path: Path) -> list[str]:
    """Names of three parts, each of which a host has completed."""
    plan = make_plan()
    folders = write_parts(tmp_path, plan.id, [(0,), (1,), (2, 3)])
    for number, (folder, batches) in enumerate(zip(folders, [(0,), (1,), (2, 3)], strict=True)):
        start = folder / "starts/host.00000000"
        start.mkdir(parents=True)
        write_provenance(start, begin_provenance(plan, ["x"], host_id=f"h{number}"))
        with Journal(start / JOURNAL_NAME) as journal:
            for batch in batches:
                attempt = journal.begin_attempt(batch)
                journal.record(batch, attempt, 0, make_outcome(1))
                journal.complete(batch, attempt)
    return [folder.name for folder in folders]


def test_what_all_hosts_recorded_since_the_last_look_is_one_commit(tmp_path: Path, parts: list[str]) -> None:
    said: list[str] = []
    with Ledger(tmp_path / LEDGER_NAME, make_plan().id) as ledger:
        ledger._connection.set_trace_callback(said.append)
        absorber = Absorber(tmp_path, ledger, lambda _: None)
        assert sorted(absorber.absorb(parts)) == [0, 1, 2, 3]
        ledger._connection.set_trace_callback(None)
        assert absorber.statuses.total() == 4
    assert said.count("COMMIT") == 1


def test_a_look_that_is_interrupted_takes_nothing_and_the_next_one_all(
    tmp_path: Path, parts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    taking: Callable[..., set[tuple[int, int]]] = Ledger.absorb

    def interrupted(self: Ledger, attempts: object, keep: object, *, journal: str, host_id: str) -> object:
        if host_id == "h1":
            raise KeyboardInterrupt
        return taking(self, attempts, keep, journal=journal, host_id=host_id)

    with Ledger(tmp_path / LEDGER_NAME, make_plan().id) as ledger:
        absorber = Absorber(tmp_path, ledger, lambda _: None)
        with monkeypatch.context() as patched:
            patched.setattr(Ledger, "absorb", interrupted)
            with pytest.raises(KeyboardInterrupt):
                absorber.absorb(parts)
        assert ledger.completed_batches() == frozenset()
        assert sorted(absorber.absorb(parts)) == [0, 1, 2, 3]
        assert absorber.absorb(parts) == []
        assert absorber.statuses.total() == 4


def test_what_fails_of_one_host_leaves_the_others_in_the_commit(tmp_path: Path) -> None:
    good = PlacedAttempt(0, 1, "2026-01-01", "2026-01-01", [(0, make_outcome(1))])
    twice = PlacedAttempt(1, 1, "2026-01-01", "2026-01-01", [(0, make_outcome(1)), (0, make_outcome(1))])

    def keep(_attempt: PlacedAttempt, _number: int) -> None:
        pass

    with Ledger(tmp_path / LEDGER_NAME, "p") as ledger:
        with ledger.together():
            ledger.absorb([good], keep, journal="a", host_id="h1")
            with pytest.raises(DataError):
                ledger.absorb([twice], keep, journal="b", host_id="h2")
        assert ledger.completed_batches() == {0}
        assert [row.batch for row in ledger.outcomes()] == [0]
