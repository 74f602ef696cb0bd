"""Every process of a running study is killed at random instants; then it is resumed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from steelyard.model.plan import read_plan
from steelyard.record.ledger import LEDGER_NAME, Ledger
from steelyard.run.programs import launcher_path

SCRIPT = Path(__file__).with_name("small_study.py")
BLOCKS_PER_KILL = 2
LONGEST_S = 60


def _runs_in_sandbox() -> bool:
    return os.geteuid() == 0 and launcher_path().exists()


pytestmark = [
    pytest.mark.needs_root,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not _runs_in_sandbox(), reason="needs the rights of root to build sandboxes"),
]


class Study:
    """The study as a process, with what it announced."""

    def __init__(self, folder: Path, blocks: int) -> None:
        self.blocks = blocks
        self.result = folder / "result"
        self.state = Path(tempfile.mkdtemp(prefix="sy-"))
        self.said: list[str] = []

    def start(self) -> subprocess.Popen[str]:
        environment = {**os.environ, "STEELYARD_STATE": str(self.state)}
        command = [sys.executable, str(SCRIPT), str(self.result), "--blocks", str(self.blocks)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)

    def kill_after(self, delay_s: float, *, is_measuring: bool) -> list[int]:
        """Start it, kill everything it consists of after a time, and give the process ids.

        The time counts from the start, or from the first recorded run.
        """
        process = self.start()
        if is_measuring:
            assert process.stdout is not None
            self.said.append(process.stdout.readline().rstrip())
        time.sleep(delay_s)
        killed = _tree(process.pid)
        for each in killed:
            with contextlib.suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        self.said += process.communicate(timeout=LONGEST_S)[0].splitlines()
        return killed

    def finish(self) -> int:
        process = self.start()
        self.said += process.communicate(timeout=LONGEST_S)[0].splitlines()
        return process.returncode


def _tree(root: int) -> list[int]:
    """Give a process and its descendants; the root first, so that nothing can be cleaned up."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                stat = (entry / "stat").read_text(encoding="utf-8", errors="replace")
                children.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(entry.name))
    found = [root]
    for each in found:
        found += children.get(each, [])
    return found


EXITING = 0x4
"""Flag of a process that has given up memory and files. SOURCE: linux/sched.h, `PF_EXITING`."""


def _alive(processes: list[int]) -> list[int]:
    """Give those that still run.

    The first process of a pid namespace stays on its way out until whoever inherited its dead has reaped
    them, which the host's first process does when it likes.
    """
    living = []
    for each in processes:
        with contextlib.suppress(OSError):
            stat = Path(f"/proc/{each}/stat").read_text(encoding="utf-8", errors="replace")
            fields = stat.rpartition(")")[2].split()
            if fields[0] != "Z" and not int(fields[6]) & EXITING:
                living.append(each)
    return living


def _groups_of(processes: list[int]) -> list[Path]:
    names = {f"steelyard-{each}" for each in processes}
    top = Path("/sys/fs/cgroup")
    return [path for pattern in ("*", "*/*") for path in top.glob(pattern) if path.name in names]


def _check(study: Study, killed: list[int]) -> None:
    plan = read_plan(study.result / "plan.json")
    with Ledger(study.result / LEDGER_NAME, plan.id) as ledger:
        rows = list(ledger.outcomes())
        assert ledger.completed_batches() == {batch.number for batch in plan.batches}
    assert any(row.attempt > 1 for row in rows), "no kill hit a batch in flight"
    recorded = Counter((row.batch, row.attempt, row.worker, row.iteration) for row in rows)
    assert set(recorded.values()) == {1}
    announced = [tuple(map(int, line.split()[1:5])) for line in study.said if line.startswith("recorded ")]
    assert set(announced) <= set(recorded), "a run that was reported recorded is lost"
    completed = [tuple(map(int, line.split()[1:])) for line in study.said if line.startswith("completed ")]
    batches = Counter(batch for batch, _ in completed)
    assert set(batches.values()) <= {1}, "a batch was completed twice"
    for batch in plan.batches:
        execution = plan.cell_of(batch).execution
        assert execution is not None
        counted = [row for row in rows if row.batch == batch.number and row.state == "complete"]
        assert len(counted) == execution.workers * execution.iterations
        assert {row.outcome.status for row in counted} == {"completed"}
    assert _alive(killed) == []
    assert _groups_of(killed) == []
    assert list(study.state.iterdir()) == []
    study.state.rmdir()


def _torture(folder: Path, kills: int, seed: int) -> None:
    study = Study(folder, blocks=kills * BLOCKS_PER_KILL)
    generator = np.random.default_rng(seed)
    killed: list[int] = []
    for number in range(kills):
        # Every other kill aims at a batch in flight, whatever the speed of this machine: after its
        # first run there are two more of 20 ms.
        is_measuring = number % 2 == 0
        delay_s = generator.uniform(0.0, 0.02) if is_measuring else generator.uniform(0.2, 1.6)
        killed += study.kill_after(float(delay_s), is_measuring=is_measuring)
    assert study.finish() == 0
    assert study.finish() == 0, "a finished study is resumed as finished"
    _check(study, killed)


@pytest.mark.long("a study that is killed and resumed")
def test_a_study_killed_three_times_is_resumed_whole(tmp_path: Path) -> None:
    _torture(tmp_path, kills=3, seed=1)


@pytest.mark.slow
def test_a_study_killed_twenty_times_is_resumed_whole(tmp_path: Path) -> None:
    _torture(tmp_path, kills=20, seed=2)
