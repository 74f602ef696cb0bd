"""A study on a real Slurm of four nodes, whose daemons and processes are killed at random instants."""

from __future__ import annotations

import json
import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from fixtures import slurm_cluster
from integration.study_process import (
    check_whole,
    completed,
    environment,
    execute,
    recorded,
    started,
    write_study_file,
)
from steelyard.record.placed.journal import JournalReader
from steelyard.record.tables import read_runs

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

    from fixtures.slurm_cluster import Cluster

pytestmark = [pytest.mark.timing, pytest.mark.needs_slurm]

BLOCKS = 9
FAULTS = ("slurmd", "slurmctld", "submitter", "part", "drain")
LONGEST_S = 200.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    if lacking := slurm_cluster.missing():
        pytest.skip(lacking)
    with slurm_cluster.cluster(4) as made:
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


def words_of(folder: Path, *more: str) -> list[str]:
    file = write_study_file(folder, blocks=BLOCKS, iterations=4)
    return ["run", "stability", "--study-file", str(file), "--out", str(folder / "r"), *more]


def journals(result: Path) -> set[tuple[int, str]]:
    """Give what each journal says is complete."""
    found = set()
    for journal in result.glob("placed/part-*/starts/*/journal.jsonl"):
        for attempt in JournalReader(journal).completed():
            if attempt.ended_utc is not None:
                found.add((attempt.batch, journal.parent.name))
    return found


@pytest.mark.long("starts a cluster and runs a study on its four nodes")
def test_four_nodes_make_one_result(tmp_path: Path, cluster: Cluster, env: dict[str, str]) -> None:
    done = execute(words_of(tmp_path, "--on", "slurm:main"), env)
    assert done.returncode == 0, done.stderr
    result = tmp_path / "r"
    check_whole(result)
    hosts = set(read_runs(result)["host_id"].to_pylist())
    assert {host.rpartition(":")[2] for host in hosts} <= set(cluster.names)
    assert len(hosts) >= 2
    provenance = json.loads((result / "provenance.json").read_text())
    assert set(provenance["hosts"]) == hosts
    assert {session["host_id"] for session in provenance["sessions"]} == {"", *hosts}


@pytest.mark.long("runs a study after what was refused")
def test_an_option_that_the_site_refuses_is_said(tmp_path: Path, env: dict[str, str]) -> None:
    done = execute(words_of(tmp_path, "--on", "slurm:no-such-partition"), env)
    assert done.returncode == 4
    assert "cannot submit to Slurm" in done.stderr
    assert "Traceback" not in done.stderr
    done = execute(words_of(tmp_path, "--on", "slurm --array=1-3"), env)
    assert done.returncode == 3
    assert "`--array=1-3`" in done.stderr
    done = execute(words_of(tmp_path, "--on", "slurm:main"), env)
    assert done.returncode == 0, done.stderr
    check_whole(tmp_path / "r")


def hurt(fault: str, cluster: Cluster, process: subprocess.Popen[str], chance: np.random.Generator) -> None:
    """Do one thing that a cluster must survive; a daemon that was killed comes back, as systemd would."""
    node = str(chance.choice(cluster.names))
    if fault == "submitter":
        process.kill()
    elif fault == "slurmctld":
        cluster.kill("slurmctld")
        time.sleep(chance.uniform(0, 3))
        cluster.start("slurmctld")
    elif fault == "slurmd":
        cluster.kill(node)
        time.sleep(chance.uniform(0, 15))  # beyond SlurmdTimeout the controller gives the node up
        cluster.start(node)
    elif fault == "drain":
        cluster.ask("scontrol", "update", f"nodename={node}", "state=drain", "reason=test")
        time.sleep(chance.uniform(0, 3))
        cluster.ask("scontrol", "update", f"nodename={node}", "state=resume")
    elif found := parts_on(cluster):
        with suppress(ProcessLookupError):
            os.kill(int(chance.choice(found)), signal.SIGKILL)


def parts_on(cluster: Cluster) -> list[int]:
    """Give the processes that run a part on its nodes."""
    found, ours = [], str(cluster.folder).encode()
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            line, told = (entry / "cmdline").read_bytes(), (entry / "environ").read_bytes()
            if b"SLURM_JOB_ID" in told and ours in told and b"run-part" in line and b"python" in line:
                found.append(int(entry.name))
    return found


@pytest.mark.slow
@pytest.mark.timeout(3 * LONGEST_S)
@pytest.mark.parametrize("seed", range(20))
def test_whatever_is_killed_nothing_is_lost_or_doubled(
    tmp_path: Path, cluster: Cluster, env: dict[str, str], seed: int
) -> None:
    chance = np.random.default_rng(seed)
    result = tmp_path / "r"
    fault = FAULTS[seed % len(FAULTS)]
    with started(words_of(tmp_path, "--on", "slurm:main"), env) as process:
        deadline_s = time.monotonic() + LONGEST_S
        goal = chance.integers(BLOCKS - 1)
        while not (result / "plan.json").exists() or len(completed(result)) < goal:
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < deadline_s
            time.sleep(0.02)
        time.sleep(chance.uniform(0, 2))
        hurt(fault, cluster, process, chance)
        before = recorded(result) if completed(result) else set()
        _, said = process.communicate(timeout=LONGEST_S)
    if fault == "submitter":
        done = execute(["run", "stability", "--resume", "--out", str(result), "--on", "slurm:main"], env)
        assert done.returncode == 0, done.stderr
    else:
        assert process.returncode == 0, said
    check_whole(result)
    assert before <= recorded(result)
    assert {batch for batch, _ in journals(result)} == set(completed(result))
    cluster.wait_idle()
