"""The best-effort class without jobs: services have among themselves what the kernel's own class gives."""

from __future__ import annotations

import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from fixtures.guest_needs import class_in_guest
from integration.guest_services import PARTS, PROGRAM, among, quota
from steelyard.studies.colocation.guest.task_init import LOG
from steelyard.studies.colocation.guest.tasks import Guest, GuestTask, execute_tasks
from steelyard.studies.colocation.guest.trials import SCHEDULER

pytestmark = [pytest.mark.needs_sched_ext_guest, pytest.mark.slow, pytest.mark.timeout(900)]

CPUS = 2
TOOLS = ("chrt", "taskset")
NICE_5, NICE_0 = 335, 1024


@dataclass(frozen=True, slots=True)
class Facts:
    """What a task noted."""

    folder: Path
    texts: dict[str, str]

    def late_us(self, name: str) -> tuple[float, float, float, float]:
        """Mean, median, 99th percentile and largest."""
        mean, median, p99, largest = (float(word) for word in self.texts[name].split())
        return mean, median, p99, largest

    def used_ns(self, name: str) -> list[int]:
        """CPU time that each process had between two measurements."""
        before, after = (
            [int(word) for word in self.texts[f"{name}_{end}"].split()] for end in ("before", "after")
        )
        return [last - first for first, last in zip(before, after, strict=True)]

    def ratio(self, name: str) -> float:
        """CPU time of the first half of the processes, over that of the second."""
        used = self.used_ns(name)
        half = len(used) // 2
        return sum(used[:half]) / sum(used[half:])


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Facts]:
    """Give what the tasks noted that ran with the class, and without it."""
    scheduler = class_in_guest()
    tools = {name: Path(path) for name in TOOLS if (path := shutil.which(name))}
    compiler = shutil.which("cc")
    if len(tools) < len(TOOLS) or compiler is None:
        pytest.skip(f"needs {', '.join(TOOLS)} of util-linux, and a C compiler, `cc`")
    out = tmp_path_factory.mktemp("among")
    program = out / "services"
    words = [compiler, "-O1", "-static", "-x", "c", "-", "-o", str(program), "-lm", "-lpthread"]
    subprocess.run(words, input=PROGRAM, text=True, check=True)
    guest = Guest({SCHEDULER: scheduler, "services": program} | tools, cpus=CPUS)
    plans = {
        "class": [*(among(part, part, with_class=True) for part in PARTS), quota()],
        "kernel": [among(part, part, with_class=False) for part in PARTS],
    }
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda name: execute_tasks(plans[name], out / name, guest), plans))
    return {name: _facts(out / name, tasks) for name, tasks in plans.items()}


def _facts(folder: Path, tasks: list[GuestTask]) -> Facts:
    """Give what all tasks of a guest noted."""
    texts: dict[str, str] = {}
    for task in tasks:
        lines = (folder / task.name / "facts").read_text(encoding="utf-8").splitlines()
        noted = dict(line.split("=", 1) for line in lines)
        assert noted.get("ended") == "yes", (folder / task.name / LOG).read_text(encoding="utf-8")
        texts |= noted
    return Facts(folder, texts)


@pytest.mark.parametrize("name", ["wake_beside_hogs", "wake_beside_group", "wake_in_group"])
def test_who_wakes_beside_threads_that_always_run_waits_as_in_the_kernels_class(
    found: dict[str, Facts], name: str
) -> None:
    # Two hundred wakings have one phase to the tick: five times as many know what is usual.
    samples = {
        side: [found[side].late_us(f"{name}_{n}") for n in range(1, 6)] for side in ("class", "kernel")
    }
    median, usual_median = (sum(each[1] for each in samples[side]) for side in ("class", "kernel"))
    largest, usual_largest = (max(each[3] for each in samples[side]) for side in ("class", "kernel"))
    assert median <= 2 * usual_median
    assert largest <= 2 * usual_largest


@pytest.mark.parametrize(("name", "expected"), [("equal", 1), ("weights", 100), ("three", 3)])
def test_groups_share_the_cpus_by_their_weights(found: dict[str, Facts], name: str, expected: float) -> None:
    assert found["class"].ratio(name) == pytest.approx(expected, rel=0.05)


def test_tasks_of_a_group_share_by_their_nice_levels(found: dict[str, Facts]) -> None:
    assert found["class"].ratio("nice") == pytest.approx(NICE_0 / NICE_5, rel=0.05)


SEEDS = range(1, 6)


@pytest.mark.parametrize("name", ["pool", "mixed", "pool_a", "pool_b"])
def test_requests_of_a_pool_wait_no_longer_than_in_the_kernels_class(
    found: dict[str, Facts], name: str
) -> None:
    # A sample of ten seconds knows its 99th percentile to 10 or 20 %: seeds are judged together.
    class_us, kernel_us = (
        sum(found[side].late_us(f"{name}_{seed}")[2] for seed in SEEDS) for side in ("class", "kernel")
    )
    assert class_us <= 1.05 * kernel_us


def test_the_class_refuses_a_quota_and_names_its_group(found: dict[str, Facts]) -> None:
    facts = found["class"]
    assert (facts.texts["refused"], facts.texts["state_refused"]) == ("3", "disabled")
    said = (facts.folder / "quota" / "refused.txt").read_text(encoding="utf-8")
    assert "cannot keep the quota `20000 100000` of `/sys/fs/cgroup/trials/a/cpu.max`" in said
    assert "hint: " in said


def test_the_class_stands_back_where_a_quota_is_set_later(found: dict[str, Facts]) -> None:
    facts = found["class"]
    assert facts.texts["loader_status"] == "3"
    assert float(facts.texts["detached_after"]) < 10
    said = (facts.folder / "quota" / "loader.txt").read_text(encoding="utf-8")
    assert "trials/a/cpu.max" in said
    before, after = (int(facts.texts[f"limited_{end}"]) for end in ("before", "after"))
    # A fifth of 3 s, in ticks of 10 ms.
    assert after - before == pytest.approx(60, abs=6)
