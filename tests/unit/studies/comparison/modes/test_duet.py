from __future__ import annotations

import pytest

from steelyard.errors import UsageError
from steelyard.model.run_outcome import RunOutcome, RunStatus
from steelyard.studies.comparison.contender import Commands
from steelyard.studies.comparison.modes.duet import (
    SMALL_OVERLAP,
    cpu_sets_of,
    duet_summary,
    flagged,
    overlap_share,
)
from steelyard.studies.comparison.sample import Run
from steelyard.studies.comparison.terms import Mode, Terms

DUET = Terms(mode=Mode.DUET)


def outcome(start_ns: int | None, end_ns: int | None) -> RunOutcome:
    return RunOutcome(id="r", iteration=1, status=RunStatus.COMPLETED, start_ns=start_ns, end_ns=end_ns)


def run(contender: int, block: int, span: tuple[int, int], phase: str = "measure") -> Run:
    return Run(contender, block, 0, phase, "completed", 0, None, None, None, start_ns=span[0], end_ns=span[1])


@pytest.mark.parametrize(
    ("spans", "share"),
    [
        (((0, 10), (0, 10)), 1.0),
        (((0, 10), (5, 15)), 0.5),
        (((0, 10), (0, 30)), 1 / 3),
        (((0, 10), (20, 30)), 0.0),
        (((0, 10), (None, None)), None),
    ],
)
def test_the_overlap_is_a_part_of_the_longer_run(
    spans: tuple[tuple[int | None, int | None], ...], share: float | None
) -> None:
    found = overlap_share([outcome(*span) for span in spans])
    assert found == (None if share is None else pytest.approx(share))


def test_runs_that_hardly_overlap_are_labelled_and_their_blocks_named() -> None:
    assert not any(each.flags for each in flagged([outcome(0, 10), outcome(5, 15)]))
    assert [each.flags for each in flagged([outcome(0, 10), outcome(6, 16)])] == [(SMALL_OVERLAP,)] * 2
    spans = {1: (0, 100), 2: (90, 190), 3: (10, 110)}
    runs = [run(0, block, (0, 100)) for block in spans] + [run(1, block, spans[block]) for block in spans]
    runs += [run(0, 0, (0, 10), "warmup"), run(1, 0, (50, 60), "warmup")]
    found = duet_summary(DUET, runs)
    assert found is not None
    assert (found.blocks, found.small) == (3, (2,))
    assert found.least == pytest.approx(0.1)
    assert found.sentence.endswith("less than half, where little cancels, in the blocks 2")
    assert duet_summary(Terms(), runs) is None


def test_many_blocks_are_not_all_named() -> None:
    runs = [run(side, block, (50 * side, 60 + 50 * side)) for block in range(30) for side in (0, 1)]
    found = duet_summary(DUET, runs)
    assert found is not None
    assert len(found.small) == 30
    assert found.sentence.endswith("0, 1, 2, 3, 4, 5, 6, 7 and 22 more")


def test_a_duet_of_three_is_refused() -> None:
    with pytest.raises(UsageError, match=r"`--mode duet` runs two commands at the same time; given: 3"):
        cpu_sets_of(DUET, Commands(("a", "b", "c")).field())
    assert cpu_sets_of(Terms(), Commands(("a", "b", "c")).field()) == ()
