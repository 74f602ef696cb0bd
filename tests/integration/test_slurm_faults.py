"""A study on a real Slurm whose jobs, nodes, disk and user do what they do on real clusters."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import numpy as np
import pytest

from fixtures import slurm_cluster
from integration.study_process import (
    COMMAND,
    check_whole,
    completed,
    environment,
    execute,
    recorded,
    started,
    wait_for_batches,
    write_study_file,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fixtures.slurm_cluster import Cluster

pytestmark = [pytest.mark.timing, pytest.mark.needs_slurm]

BLOCKS = 9
LONGEST_S = 200.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    if lacking := slurm_cluster.missing():
        pytest.skip(lacking)
    with slurm_cluster.cluster(3) as made:
        yield made


@pytest.fixture
def env(cluster: Cluster) -> Iterator[dict[str, str]]:
    # Parts wait for a quiet machine, which a cluster on one machine is not.
    with environment() as found:
        try:
            yield {**cluster.environment, **found, "SLURM_CONF": cluster.environment["SLURM_CONF"]} | {
                "STEELYARD_LONGEST_WAIT_S": "0.1"
            }
        finally:
            cluster.clear()


def words_of(folder: Path, result: Path, *more: str, blocks: int = BLOCKS, iterations: int = 4) -> list[str]:
    file = write_study_file(folder, blocks=blocks, iterations=iterations)
    return [
        "run",
        "stability",
        "--study-file",
        str(file),
        "--out",
        str(result),
        "--on",
        " ".join(("slurm:main", *more)),
    ]


def resumed(result: Path) -> list[str]:
    return ["run", "stability", "--resume", "--out", str(result)]


def check_left(cluster: Cluster) -> None:
    """Check that no job and no process of one is left."""
    deadline_s = time.monotonic() + 30
    while found := cluster.ask("squeue", "--noheader").strip() or cluster.tasks(b"run-part"):
        assert time.monotonic() < deadline_s, found
        time.sleep(0.1)


def hurt(fault: str, cluster: Cluster) -> None:
    """Do one thing to one of the jobs that run."""
    running = cluster.ask("squeue", "--noheader", "--states=R", "--format=%i %N").split("\n")
    job, node = next(line.split() for line in running if line)
    if fault == "cancelled":
        cluster.ask("scancel", job)
    elif fault == "requeued":
        cluster.ask("scontrol", "requeue", job)
    else:
        cluster.reboot(node)


@pytest.mark.slow
@pytest.mark.timeout(3 * LONGEST_S)
@pytest.mark.parametrize("fault", ["cancelled", "requeued", "reboot"])
def test_what_ends_a_job_in_the_middle_loses_and_doubles_nothing(
    tmp_path: Path, cluster: Cluster, env: dict[str, str], fault: str
) -> None:
    result = tmp_path / "r"
    with started(words_of(tmp_path, result), env) as process:
        wait_for_batches(process, result, 3)
        time.sleep(np.random.default_rng(len(fault)).uniform(0, 1))
        before = recorded(result)
        hurt(fault, cluster)
        _, said = process.communicate(timeout=LONGEST_S)
    assert process.returncode == 0, said
    assert "Traceback" not in said
    check_whole(result)
    assert before <= recorded(result)
    check_left(cluster)


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[Path]:
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.slow
@pytest.mark.timeout(3 * LONGEST_S)
def test_a_full_disk_is_said_and_the_study_goes_on_when_there_is_space(
    tmp_path: Path, cluster: Cluster, env: dict[str, str]
) -> None:
    """Nodes and submitter see the same folder."""
    with small_disk(tmp_path / "disk", 64) as disk:
        result = disk / "r"
        with started(words_of(tmp_path, result), env) as process:
            wait_for_batches(process, result, 3)
            filling = disk / "filling"
            with suppress(OSError), filling.open("wb", buffering=0) as file:
                while True:
                    file.write(bytes(1 << 12))
            _, said = process.communicate(timeout=LONGEST_S)
        assert process.returncode not in {0, 130}, said
        assert "Traceback" not in said
        assert "No space left" in said, said
        check_left(cluster)
        filling.unlink()
        before = completed(result)
        done = execute(resumed(result), env)
        assert done.returncode == 0, done.stderr
        check_whole(result)
        assert before.items() <= completed(result).items()
        check_left(cluster)


@pytest.mark.slow
@pytest.mark.timeout(3 * LONGEST_S)
def test_a_second_submitter_is_refused_and_disturbs_nothing(
    tmp_path: Path, cluster: Cluster, env: dict[str, str]
) -> None:
    result = tmp_path / "r"
    with started(words_of(tmp_path, result), env) as process:
        wait_for_batches(process, result, 1)
        for words in (words_of(tmp_path, result), resumed(result)):
            done = execute(words, env)
            assert done.returncode == 5
            assert "another process is running a study" in done.stderr
        _, said = process.communicate(timeout=LONGEST_S)
    assert process.returncode == 0, said
    check_whole(result)
    check_left(cluster)


@pytest.mark.slow
@pytest.mark.timeout(3 * LONGEST_S)
@pytest.mark.parametrize("seed", range(6))
def test_ctrl_c_twice_leaves_no_jobs(
    tmp_path: Path, cluster: Cluster, env: dict[str, str], seed: int
) -> None:
    """As a terminal does it: all processes in front hear it. Half are interrupted while nodes are asked."""
    chance = np.random.default_rng(seed)
    result = tmp_path / "r"
    process = subprocess.Popen(
        [*COMMAND, *words_of(tmp_path, result)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
        start_new_session=True,
    )
    try:
        if seed % 2:
            wait_for_batches(process, result, 1)
        else:
            while not list(result.glob("placed/describe-*")):
                assert process.poll() is None
                time.sleep(0.001)
        time.sleep(chance.uniform(0, 0.5))
        for _ in range(2):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGINT)
            time.sleep(chance.uniform(0, 0.1))
        _, said = process.communicate(timeout=30)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode in {130, -signal.SIGINT}
    assert "Traceback" not in said
    check_left(cluster)
    before = completed(result)
    if (result / "plan.json").exists():
        done = execute(resumed(result), env)
        assert done.returncode == 0, done.stderr
        check_whole(result)
        assert before.items() <= completed(result).items()
