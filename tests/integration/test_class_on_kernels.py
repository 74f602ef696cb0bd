"""The best-effort class under each kernel that was fetched, and on hundreds of possible CPUs."""

from __future__ import annotations

import json
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fixtures.guest_needs import class_in_guest
from integration.guest_kernels import bound, facts_of, on_kernel, shares
from steelyard.studies.colocation.guest.sched_ext import find_sched_ext_kernel, sched_ext_kernels
from steelyard.studies.colocation.guest.tasks import Guest, execute_tasks
from steelyard.studies.colocation.guest.trials import SCHEDULER

if TYPE_CHECKING:
    from typing import Any

pytestmark = [pytest.mark.needs_sched_ext_guest, pytest.mark.slow, pytest.mark.timeout(900)]

POSSIBLE = (200, 600)
SINCE = {
    "scx_bpf_dsq_insert": (6, 13),
    "SCX_OPS_ENQ_MIGRATION_DISABLED": (6, 14),
    "scx_bpf_dsq_insert___v2": (6, 19),
    "scx_bpf_task_set_slice": (6, 19),
}


@pytest.fixture(scope="module")
def kernels() -> list[Path]:
    """Give the kernels that were fetched, two of them at least."""
    class_in_guest()
    found = sched_ext_kernels()
    if len(found) < 2:
        names = ", ".join(path.name for path in found)
        pytest.skip(f"needs two kernels with sched_ext, here: {names}: `make deps-colocation`")
    return found


@pytest.fixture(scope="module")
def left(kernels: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder with one folder for each kernel, and each number of possible CPUs."""
    out = tmp_path_factory.mktemp("kernels")
    chrt = shutil.which("chrt")
    if chrt is None:
        pytest.skip("needs `chrt` of util-linux")
    guest = {SCHEDULER: class_in_guest(), "chrt": Path(chrt)}
    reference = find_sched_ext_kernel()
    with ThreadPoolExecutor(2) as pool:
        waiting = [
            *(
                pool.submit(execute_tasks, [on_kernel()], out / path.name, Guest(guest, kernel=path))
                for path in kernels
            ),
            *(
                pool.submit(
                    execute_tasks,
                    [on_kernel(), bound()],
                    out / str(count),
                    Guest(guest, kernel=reference, possible_cpus=count),
                )
                for count in POSSIBLE
            ),
        ]
        for future in waiting:
            future.result()
    return out


def _parks_a_job(folder: Path) -> dict[str, Any]:
    """Check what a job and services had, and that strictness was measured; give what the class counted."""
    facts = facts_of(folder)
    (alone,), (job, *services) = shares(facts, "alone", 2), shares(facts, "parked", 5)
    assert alone > 95
    assert job < 1
    assert min(services) > 95
    assert shares(facts, "resumed", 2)[0] > 95
    assert shares(facts, "detached", 1)[0] > 95
    counted: dict[str, Any] = json.loads((folder / "scheduler.json").read_text(encoding="utf-8"))
    assert counted["strictness"]["events"] > 0
    # A tick is 4 ms.
    assert counted["strictness"]["longest_ns"] < 4_000_000
    assert (counted["ejections"], counted["last_exit"]) == (0, "")
    return counted


def test_the_class_holds_under_each_kernel(left: Path, kernels: list[Path]) -> None:
    for path in kernels:
        _parks_a_job(left / path.name / "kernel")


def test_probe_says_which_names_of_the_kernel_are_used(left: Path, kernels: list[Path]) -> None:
    for path in kernels:
        folder = left / path.name / "kernel"
        found = json.loads((folder / "probe.json").read_text(encoding="utf-8"))
        assert (facts_of(folder)["probe"], found["available"], found["reasons"]) == ("0", True, [])
        version = re.search(r"(\d+)\.(\d+)", found["kernel"])
        assert version is not None, found["kernel"]
        release = (int(version[1]), int(version[2]))
        used = {feature["name"]: feature["used"] for feature in found["features"]}
        for name, since in SINCE.items():
            is_newest = name != "scx_bpf_dsq_insert" or release < SINCE["scx_bpf_dsq_insert___v2"]
            assert used.get(name, False) == (release >= since and is_newest), (found["kernel"], name)
        said = (folder / "probe.txt").read_text(encoding="utf-8")
        assert found["kernel"] in said
        assert all(feature["why"] in said for feature in found["features"])


def test_the_class_and_the_meter_know_hundreds_of_possible_cpus(left: Path) -> None:
    for count in POSSIBLE:
        assert facts_of(left / str(count) / "kernel")["possible"] == f"0-{count - 1}"
        _parks_a_job(left / str(count) / "kernel")


def test_bound_threads_of_the_kernel_wait_for_a_service_until_the_next_tick(left: Path) -> None:
    for count in POSSIBLE:
        facts = facts_of(left / str(count) / "bound")
        # A hundred times, each of which may have to wait for a tick of 4 ms on both CPUs.
        assert float(facts["beside_services"]) < 1.0
        assert float(facts["beside_jobs"]) < float(facts["idle"]) + 0.4
        assert min(shares(facts, "services", 3)) > 95
        assert facts["grace_period"] == "yes"
