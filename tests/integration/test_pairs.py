"""Pairs of nodes of a real Slurm, whose nodes are one machine: each is measured by a job that has both."""

from __future__ import annotations

import json
import signal
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import pytest

from fixtures import slurm_cluster
from integration.study_process import (
    completed,
    environment,
    execute,
    recorded,
    start,
    wait_for_batches,
)
from steelyard.model.finding import read_findings
from steelyard.model.plan import read_plan
from steelyard.record.ledger_reader import LedgerReader
from steelyard.record.tables import read_runs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from subprocess import Popen

    from fixtures.slurm_cluster import Cluster

pytestmark = [pytest.mark.timing, pytest.mark.needs_slurm]

SHORT = ("--operations", "300", "--largest", "10000", "--budget", "20", "--quick")
LONGEST_S = 300.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    if lacking := slurm_cluster.missing():
        pytest.skip(lacking)
    with slurm_cluster.cluster(3, apart=("n3",)) as made:
        yield made


@contextmanager
def environment_of(cluster: Cluster) -> Iterator[dict[str, str]]:
    with environment() as found:
        yield {**cluster.environment, **found, "SLURM_CONF": cluster.environment["SLURM_CONF"]} | {
            "STEELYARD_LONGEST_WAIT_S": "0.1"
        }


@pytest.fixture
def env(cluster: Cluster) -> Iterator[dict[str, str]]:
    with environment_of(cluster) as found:
        yield found


def words(result: Path, pairs: str, transports: str, *more: str, replications: int = 2) -> list[str]:
    asked = ("--pairs", pairs, "--transport", transports, "--on", "slurm:main", "--out", str(result))
    return ["run", "communication", *SHORT, "--replications", str(replications), *asked, *more]


def wait_for_begun(process: Popen[str], result: Path, link: str) -> None:
    """Wait until a part of a pair runs a batch and has more of them."""
    deadline_s = time.monotonic() + LONGEST_S
    plan = read_plan(result / "plan.json")
    while True:
        for journal in result.glob("placed/part-*/starts/*/journal.jsonl"):
            begun = [json.loads(line[9:]) for line in journal.read_text().splitlines() if line.endswith("}")]
            if not begun or "begin" not in begun[0]:
                continue
            cell = plan.cells[plan.batches[begun[0]["begin"]].cell]
            if cell.levels["link"] == link and sum("complete" in line for line in begun) == 1:
                return
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def check_pairs(result: Path, links: Sequence[str]) -> None:
    """Check that each run of the plan is there once, by a job that had the nodes of its pair."""
    plan = read_plan(result / "plan.json")
    assert plan.factors["link"] == tuple(links)
    assert sorted(completed(result)) == [batch.number for batch in plan.batches]
    runs = read_runs(result)
    assert sorted(runs["batch"].to_pylist()) == [batch.number for batch in plan.batches]
    assert set(runs["status"].to_pylist()) == {"completed"}
    for batch, host in zip(runs["batch"].to_pylist(), runs["host_id"].to_pylist(), strict=True):
        nodes = plan.cells[plan.batches[batch].cell].levels["link"].split(":")
        assert host.rpartition(":")[2] in nodes


@pytest.mark.needs_mpi
@pytest.mark.long("starts a cluster, and ranks on two of its nodes by srun and by mpirun")
def test_each_pair_has_its_own_model(tmp_path: Path, env: dict[str, str]) -> None:
    result = tmp_path / "r"
    done = execute(words(result, "n1:n2,n3:n3", "tcp,mpich,openmpi"), env)
    assert done.returncode == 0, done.stderr
    assert "n1 and n2 are one machine" in " ".join(done.stdout.split())
    check_pairs(result, ["n1:n2", "n3:n3"])
    models = {path.stem for path in (result / "models").iterdir()}
    for name in ("tcp-n1-n2", "mpich-n1-n2", "tcp-n3-n3", "mpich-n3-n3", "openmpi-n3-n3"):
        assert any(model.startswith(name) for model in models), models
    assert not any(model.startswith("openmpi-n1-n2") for model in models)
    found = {
        (each.subject["transport"], each.subject["link"]): each
        for each in read_findings(result / "findings.json").of("pair")
    }
    assert found["mpich", "n1:n2"].verdict == "one machine"
    assert found["mpich", "n1:n2"].facts["started_by"] == "srun --mpi=pmi2"
    assert found["mpich", "n1:n2"].facts["seen"] == "n1, n2"
    assert found["tcp", "n3:n3"].verdict == "one node"


@pytest.mark.needs_mpi
@pytest.mark.long("starts ranks on two nodes")
@pytest.mark.parametrize("starter", ["pmix", "mpirun"])
def test_ranks_of_open_mpi_are_started_as_asked(tmp_path: Path, env: dict[str, str], starter: str) -> None:
    result = tmp_path / "r"
    done = execute(words(result, "n3:n2", "openmpi-tcp", "--starter", starter), env)
    assert done.returncode == 0, done.stderr
    check_pairs(result, ["n3:n2"])
    (pair,) = read_findings(result / "findings.json").of("pair")
    assert starter in str(pair.facts["started_by"])
    assert pair.facts["seen"] == "n2, n3"
    for trace in (result / "traces").iterdir():
        nodes = [json.loads((trace / f"header.{rank}.json").read_text())["node"] for rank in (0, 1)]
        assert sorted(nodes) == ["n2", "n3"]
        assert "SLURM" not in (trace / "endpoints.sh").read_text(), "it names user and site"


@pytest.mark.long("asks nodes what they are before it refuses")
@pytest.mark.parametrize(
    ("pairs", "said"), [("n1:n9", "names the node `n9`"), ("n1-n2", "`--pairs n1-n2` is not a pair of nodes")]
)
def test_a_wrong_pair_is_refused(tmp_path: Path, env: dict[str, str], pairs: str, said: str) -> None:
    done = execute(words(tmp_path / "r", pairs, "tcp"), env)
    assert done.returncode == 2
    assert said in done.stderr
    assert "nodes: n1, n2, n3" in done.stderr or "NODE:NODE" in done.stderr
    assert not (tmp_path / "r" / "plan.json").exists()


def test_pairs_need_nodes_that_have_names(tmp_path: Path, env: dict[str, str]) -> None:
    done = execute(["run", "communication", "--pairs", "a:b", "--out", str(tmp_path / "r")], env)
    assert done.returncode == 2
    assert "--on slurm:PARTITION" in done.stderr


@pytest.mark.slow
@pytest.mark.timeout(2 * LONGEST_S)
def test_a_run_that_slurm_did_not_start_is_no_failure_of_the_pair(tmp_path: Path) -> None:
    """A daemon is away longer than `srun` waits for it, and not as long as its controller does."""
    if lacking := slurm_cluster.missing():
        pytest.skip(lacking)
    result = tmp_path / "r"
    with slurm_cluster.cluster(2, given_up_after_s=300) as patient, environment_of(patient) as env:
        process = start(words(result, "n1:n2,n2:n2", "tcp", replications=40), env)
        wait_for_batches(process, result, 1)
        wait_for_begun(process, result, "n1:n2")
        patient.kill("n2")
        time.sleep(25)
        patient.start("n2")
        _, said = process.communicate(timeout=LONGEST_S)
    assert process.returncode == 0, said
    check_pairs(result, ["n1:n2", "n2:n2"])
    with LedgerReader(result / "ledger.sqlite") as reader:
        reasons = [reason for each in reader.disturbances().values() for reason in each]
    assert any(reason.startswith("node n2 was lost: ") for reason in reasons)


@pytest.mark.slow
@pytest.mark.timeout(2 * LONGEST_S)
@pytest.mark.parametrize("fault", ["submitter", "slurmd", "slurmctld"])
def test_what_dies_is_measured_again_and_nothing_twice(
    tmp_path: Path, cluster: Cluster, env: dict[str, str], fault: str
) -> None:
    result = tmp_path / "r"
    process = start(words(result, "n1:n2,n2:n3", "tcp", replications=4), env)
    wait_for_batches(process, result, 1)
    time.sleep(np.random.default_rng(len(fault)).uniform(0, 1))
    before = recorded(result)
    if fault == "submitter":
        process.send_signal(signal.SIGKILL)
        process.communicate()
        done = execute(["run", "communication", "--resume", "--out", str(result)], env)
        assert done.returncode == 0, done.stderr
    else:
        name = "n2" if fault == "slurmd" else fault
        cluster.kill(name)
        time.sleep(12)  # beyond SlurmdTimeout the controller gives the node up
        cluster.start(name)
        _, said = process.communicate(timeout=LONGEST_S)
        assert process.returncode == 0, said
    check_pairs(result, ["n1:n2", "n2:n3"])
    assert before <= recorded(result)
    cluster.wait_idle()
