"""Which runs are still wanted, over generated runs that are laid down one by one."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
import pytest

from steelyard.design.blocks import draw_batches
from steelyard.model import Batch, Cell, Execution, Plan
from steelyard.record.interim_log import read_looks
from steelyard.record.trace_folder import TRACES_NAME
from steelyard.run.executor.run_files import files_name
from steelyard.run.executor.run_options import EveryBatch
from steelyard.studies.replication.experiment_record import EXPERIMENT_FILE, FORMAT, HEADER_FILE, JMH_FILE
from steelyard.studies.replication.findings.comparisons import judge_all
from steelyard.studies.replication.findings.until_decided import UntilDecided, planned_looks, selection_of
from steelyard.studies.replication.margins import planned_margins
from steelyard.studies.replication.recorded import runs_on_disk
from steelyard.studies.replication.values.summaries import cells_of, summarise

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

RUN_S = 2.0
NAMES = ("experiment", "configuration", "setting")
Level = tuple[str, str]
CLEAR: Mapping[Level, float] = {
    ("file-io", "native"): 1.0,
    ("file-io", "container"): 1.6,
    ("network-io", "native"): 1.0,
    ("network-io", "container"): 1.0,
}


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def planned(levels: Mapping[Level, float], *, blocks: int = 30, minutes: float | None = 60.0) -> Plan:
    """Plan micro benchmarks in settings; the last cell repeats the first."""
    numbered = [
        Cell(number, dict(zip(NAMES, ("e1", *level), strict=True)), Execution("bare", ("python",)))
        for number, level in enumerate([*levels, next(iter(levels))])
    ]
    options: dict[str, str | int | float | bool | None] = {
        "margin_percent": 5.0,
        "budget_minutes": minutes,
    }
    return Plan(
        study="replication",
        seed=1,
        factors={name: tuple(dict.fromkeys(cell.levels[name] for cell in numbered)) for name in NAMES},
        cells=tuple(numbered),
        batches=draw_batches(range(len(numbered)), blocks=blocks, seed=1),
        blocks=blocks,
        options=options,
        twin=(0, len(levels)),
    ).freeze()


def lay(result: Path, plan: Plan, batch: Batch, speed: float, cv: float, attempt: int = 1) -> None:
    """Leave what a run leaves."""
    folder = result / TRACES_NAME / files_name(batch.number, attempt)
    folder.mkdir(parents=True)
    rng = np.random.default_rng([batch.cell, batch.block])
    score = 1e3 * speed * float(np.exp(cv * rng.standard_normal()))
    metric = {"score": score, "scoreUnit": "ops/ms", "rawData": [[score, score]]}
    entry = {"benchmark": "b", "mode": "thrpt", "forks": 1, "primaryMetric": metric}
    (folder / JMH_FILE).write_text(json.dumps([entry]), encoding="utf-8")
    levels = plan.cell_of(batch).levels
    asked = {"format": FORMAT, "experiment": "e1", "configuration": {"name": levels["configuration"]}}
    (folder / EXPERIMENT_FILE).write_text(json.dumps(asked), encoding="utf-8")
    header = {"format": FORMAT, "is_complete": True, "outcome": "completed", "devices": {}, "roles": {}}
    (folder / HEADER_FILE).write_text(json.dumps(header), encoding="utf-8")


def execute(
    result: Path,
    plan: Plan,
    speeds: Mapping[Level, float],
    *,
    cv: float = 0.01,
    clock: Clock | None = None,
    stop_after: int | None = None,
) -> list[Batch]:
    """Run what is wanted of what is not there yet; give it."""
    clock = clock or Clock()
    result.mkdir(exist_ok=True)
    done: list[Batch] = []
    with suppress(KeyboardInterrupt), UntilDecided(plan, result, clock) as selection:
        for batch in plan.batches:
            if (result / TRACES_NAME / files_name(batch.number, 1)).exists():
                continue
            if not selection.wants(batch):
                continue
            if len(done) == stop_after:
                raise KeyboardInterrupt
            levels = plan.cell_of(batch).levels
            lay(result, plan, batch, speeds[levels["configuration"], levels["setting"]], cv)
            clock.now_s += RUN_S
            done.append(batch)
    return done


def verdicts(result: Path, plan: Plan) -> dict[str, str]:
    summaries, _ = summarise(runs_on_disk(result, plan, plan.batches))
    looks = planned_looks(result, plan, 1 + max(each.recorded.block for each in summaries))
    judged = judge_all(cells_of(summaries), planned_margins(plan), looks)
    return {each.first.key[1]: found.verdict.value for each, found, _ in judged}


def test_what_is_clear_ends_after_five_blocks_and_is_decided(tmp_path: Path) -> None:
    plan = planned(CLEAR)
    done = execute(tmp_path, plan, CLEAR)
    assert len(done) == 5 * len(plan.cells)
    assert verdicts(tmp_path, plan) == {"file-io": "different", "network-io": "equivalent"}
    times = read_looks(tmp_path, plan.id, 1)
    assert (times.end, [blocks for blocks, _ in times.looks[0]]) == ("settled", [5])


def test_only_what_is_open_is_executed_further_and_the_budget_ends_it(tmp_path: Path) -> None:
    speeds = {**CLEAR, ("network-io", "container"): 1.05}
    plan = planned(speeds, minutes=2.5)
    clock = Clock()
    done = execute(tmp_path, plan, speeds, cv=0.05, clock=clock)
    later = {tuple(plan.cell_of(batch).levels.values())[1:] for batch in done if batch.block >= 5}
    # The control repeats the first cell, and is open for a while too.
    assert later == {("network-io", "native"), ("network-io", "container"), ("file-io", "native")}
    assert 150 - 2 * len(plan.cells) * RUN_S < clock.now_s <= 150
    times = read_looks(tmp_path, plan.id, 1)
    assert (times.end, times.looks[0][-1][1]) == ("spent", 1.0)
    assert verdicts(tmp_path, plan) == {"file-io": "different", "network-io": "undecided"}


def test_a_block_that_takes_unusually_long_is_cut_off_where_the_budget_ends(tmp_path: Path) -> None:
    speeds = {level: 1.05 if "container" in level else 1.0 for level in CLEAR}
    plan = planned(speeds, minutes=2.0)
    clock = Clock()
    with UntilDecided(plan, tmp_path, clock) as selection:
        for batch in plan.batches:
            if selection.wants(batch):
                levels = plan.cell_of(batch).levels
                lay(tmp_path, plan, batch, speeds[levels["configuration"], levels["setting"]], 0.05)
                clock.now_s += RUN_S if batch.block < 6 else 10 * RUN_S
    assert 120 <= clock.now_s < 120 + 10 * RUN_S
    times = read_looks(tmp_path, plan.id, 1)
    assert (times.end, times.looks[0][-1][1]) == ("spent", 1.0)


def test_the_last_planned_block_is_looked_at_too(tmp_path: Path) -> None:
    speeds = {level: 1.05 if "container" in level else 1.0 for level in CLEAR}
    plan = planned(speeds, blocks=6)
    execute(tmp_path, plan, speeds)
    times = read_looks(tmp_path, plan.id, 1)
    assert (times.end, times.looks[0][-1]) == ("spent", (6, 1.0))


def test_a_study_that_is_stopped_and_continued_executes_what_it_would_have(tmp_path: Path) -> None:
    speeds = {**CLEAR, ("network-io", "container"): 1.05}
    plan = planned(speeds, minutes=2.5)
    whole = execute(tmp_path / "whole", plan, speeds, cv=0.05)
    for stop_after in (3, 5 * len(plan.cells) + 3):
        result, clock = tmp_path / str(stop_after), Clock()
        parts = execute(result, plan, speeds, cv=0.05, clock=clock, stop_after=stop_after)
        assert len(parts) == stop_after
        assert read_looks(result, plan.id, 1).end == "open"
        parts += execute(result, plan, speeds, cv=0.05, clock=Clock())
        assert parts == whole
        assert read_looks(result, plan.id, 1) == read_looks(tmp_path / "whole", plan.id, 1)
        assert execute(result, plan, speeds) == []


def test_a_stopped_study_is_analysed_with_what_there_is(tmp_path: Path) -> None:
    plan = planned(CLEAR)
    execute(tmp_path, plan, CLEAR, stop_after=3 * len(plan.cells))
    ((blocks, fraction),) = planned_looks(tmp_path, plan, 3) or ()
    assert blocks == 3
    assert fraction == pytest.approx(0.1)
    assert set(verdicts(tmp_path, plan).values()) == {"undecided"}


def test_of_a_repeated_run_the_last_attempt_counts(tmp_path: Path) -> None:
    plan = planned(CLEAR)
    batch = plan.batches[0]
    for attempt, speed in ((1, 1.0), (2, 3.0)):
        lay(tmp_path, plan, batch, speed, 0.0, attempt)
    (found,) = runs_on_disk(tmp_path, plan, [batch])
    assert found.folder.name == files_name(batch.number, 2)


def test_cells_whose_runs_break_do_not_keep_a_study_going(tmp_path: Path) -> None:
    plan = planned(CLEAR)
    clock = Clock()
    with UntilDecided(plan, tmp_path, clock) as selection:
        for batch in plan.batches:
            if selection.wants(batch):
                levels = plan.cell_of(batch).levels
                if levels["setting"] == "native":
                    lay(tmp_path, plan, batch, 1.0, 0.01)
                clock.now_s += RUN_S
    # The control alone is decided; nothing can be compared with a setting that never comes to its end.
    assert read_looks(tmp_path, plan.id, 1).end == "settled"


def test_without_a_budget_every_batch_is_wanted_and_nothing_is_kept(tmp_path: Path) -> None:
    plan = planned(CLEAR, minutes=None)
    with selection_of(plan, tmp_path) as selection:
        assert isinstance(selection, EveryBatch)
        assert all(selection.wants(batch) for batch in plan.batches)
    assert planned_looks(tmp_path, plan, 3) is None
    assert not list(tmp_path.iterdir())
