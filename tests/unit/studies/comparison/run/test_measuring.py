from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from steelyard.analyse.comparison.duel import Duel
from steelyard.analyse.comparison.equivalence import Verdict
from steelyard.analyse.comparison.interim_schedule import Extent
from steelyard.analyse.comparison.sequential import Design, SequentialComparison
from steelyard.errors import RunError
from steelyard.studies.comparison.contender import Commands, Side
from steelyard.studies.comparison.run import measuring
from steelyard.studies.comparison.run.execution import Unwatched
from steelyard.studies.comparison.run.launch import execute_line
from steelyard.studies.comparison.run.measuring import Contest, Measuring
from steelyard.studies.comparison.terms import Terms, draw_plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.model import Batch
    from steelyard.studies.comparison.contender import Contender


def grown(size: int) -> Duel:
    duel = Duel(0, 1, SequentialComparison(Design()))
    duel.differences = list(0.03 + 0.05 * np.random.default_rng(4).standard_normal(size))
    return duel


def test_a_look_soon_after_another_does_not_hide_what_was_known() -> None:
    duel = grown(60)
    duel.look(0.4)
    before = duel.known
    assert before is not None
    assert before.verdict is Verdict.SLOWER
    duel.differences.append(0.03)
    duel.look(0.4)
    assert duel.sequence.looks[-1].log_width > before.log_width
    assert duel.known is before


def test_a_later_look_that_knows_more_counts() -> None:
    duel = grown(60)
    duel.look(0.4)
    before = duel.known
    duel.differences += grown(200).differences
    duel.look(1.0)
    assert before is not None
    assert duel.known is not None
    assert duel.known.blocks == 260
    assert duel.known.log_width < before.log_width


def test_a_look_at_nothing_new_changes_nothing() -> None:
    duel = grown(30)
    duel.look(0.2)
    duel.look(0.9)
    assert len(duel.sequence.looks) == 1


def test_nothing_is_known_without_blocks() -> None:
    duel = Duel(0, 1, SequentialComparison(Design()))
    duel.look(1.0)
    assert duel.known is not None
    assert duel.known.verdict is Verdict.NA
    assert duel.is_open


def test_what_goes_on_spends_from_where_it_stands_to_the_next_whole_number() -> None:
    duel = Duel(0, 1, SequentialComparison(Design()))
    assert [duel.fraction(share) for share in (0.0, 0.3, 1.0)] == [0.0, 0.3, 1.0]
    duel.begun = 0.4
    assert [duel.fraction(share) for share in (0.0, 0.5, 1.0)] == pytest.approx([0.4, 0.7, 1.0])
    duel.begun = 1.0
    assert [duel.fraction(share) for share in (0.0, 0.5, 1.0)] == [1.0, 1.5, 2.0]


class Clock(Measuring):
    """Measures nothing: a run takes 50 ms of a clock of its own."""

    now_s = 0.0

    def _execute_runs(self, runs: Sequence[tuple[Contender, Batch]], phase: str) -> None:
        for contender, batch in runs:
            Clock.now_s += 0.05
            self._latest[contender.number] = 1.0 + 0.01 * ((batch.number * 7919) % 101)
        self.phases.append((runs[0][0].benchmark, phase))

    phases: list[tuple[str, str]]


@pytest.mark.parametrize(("minutes", "gate_s"), [(1 / 6, 0.0), (1 / 6, 0.1), (20.0, 0.0)])
def test_time_that_does_not_suffice_for_all_suffices_for_some(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, minutes: float, gate_s: float
) -> None:
    """A hundred benchmarks, of which each needs a second and more for its first look, in ten seconds."""

    def admit(_: int) -> None:
        Clock.now_s += gate_s

    Clock.now_s = 0.0
    monkeypatch.setattr(measuring, "time", SimpleNamespace(monotonic=lambda: Clock.now_s))
    sides = (Side("old", tmp_path), Side("new", tmp_path))
    names = tuple(f"b{at}" for at in range(100 if minutes < 1 else 5))
    commands = Commands(("x",) * len(names), names, sides=sides, margins=(0.02,) * len(names))
    entrants = commands.field()
    terms = Terms(extent=Extent(blocks_max=40, budget_s=60 * minutes, is_strict=True)).of(entrants)
    recorder = SimpleNamespace(admit=admit, settle=lambda: None)
    made = Clock(draw_plan(entrants, terms), entrants, terms, None, recorder)  # type: ignore[arg-type]
    made.phases = []
    made.execute(Unwatched())
    assert Clock.now_s < 60 * minutes + 0.11 + gate_s
    begun = {name for name, _ in made.phases}
    looked = [contest for contest in made.contests if any(duel.sequence.looks for duel in contest.duels)]
    if minutes < 1:
        assert 3 <= len(begun) < (8 if gate_s else 12)
        assert begun != set(names[: len(begun)]), "drawn by lot"
        assert len(looked) >= len(begun) - 1, "the last that is begun may have no verdict in the end"
        assert Clock.now_s > 8
    else:
        # Where the time suffices all take turns from the begin.
        assert {name for name, _ in made.phases[:10:2]} == set(names)
        assert len(looked) == 5


def test_choosing_the_next_block_grows_with_the_suite_and_no_faster(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = 0

    def is_open(_: Contest) -> bool:
        nonlocal asked
        asked += 1
        return True

    monkeypatch.setattr(Contest, "is_open", property(is_open))
    sides = (Side("old", tmp_path), Side("new", tmp_path))
    names = tuple(f"b{at}" for at in range(300))
    entrants = Commands(("x",) * 300, names, sides=sides, margins=(0.02,) * 300).field()
    terms = Terms(extent=Extent(blocks_max=40, budget_s=600, is_strict=True)).of(entrants)
    made = Measuring(draw_plan(entrants, terms), entrants, terms, None, None)  # type: ignore[arg-type]
    assert made._next_contest() is not None
    assert asked <= 3 * 300


def test_what_a_line_leaves_running_is_not_waited_for(tmp_path: Path) -> None:
    began_s = time.monotonic()
    execute_line("sleep 30 & echo $! > server", "--setup", tmp_path)
    assert time.monotonic() - began_s < 20
    os.kill(int((tmp_path / "server").read_text()), signal.SIGKILL)


def test_a_line_that_hangs_is_ended_with_what_it_started(tmp_path: Path) -> None:
    line = "sleep 30 & echo $! > other; echo waiting >&2; sleep 30"
    with pytest.raises(RunError, match=r"failed: it had not ended after 0.4 s: waiting$"):
        execute_line(line, "--prepare", tmp_path, 0.4)
    state = Path("/proc", (tmp_path / "other").read_text().strip(), "stat")
    deadline_s = time.monotonic() + 5.0  # what was killed is dying for a moment
    while state.exists() and ") Z " not in state.read_text():
        assert time.monotonic() < deadline_s
