"""A comparison on hosts by real engines: processes of this host, hosts that ssh reaches, nodes of Slurm."""

from __future__ import annotations

import json
import signal
import time
from typing import TYPE_CHECKING

import pytest

from fixtures import slurm_cluster, ssh_hosts
from integration.study_process import completed, environment, execute, start
from steelyard.model.plan import read_plan
from steelyard.record.tables import read_runs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


pytestmark = pytest.mark.timing

RUNS = 10


@pytest.fixture
def env() -> Iterator[dict[str, str]]:
    with environment() as found:
        yield {**found, "STEELYARD_LONGEST_WAIT_S": "0.1"}


def words_of(folder: Path, on: str, commands: Sequence[str] = ("sleep 0.01", "sleep 0.02")) -> list[str]:
    extent = ["--runs-max", str(RUNS), "--out", str(folder / "r")]
    return ["compare", "--name", "short", "--name", "long", "--on", on, *extent, *commands]


def resume_words(folder: Path) -> list[str]:
    return ["compare", "--resume", str(folder / "r")]


def check_whole(result: Path, hosts: int) -> set[str]:
    """Check that each run counts once, and each block of one host; give the hosts."""
    plan = read_plan(result / "plan.json")
    assert plan.blocks == 1 + RUNS * hosts
    runs = read_runs(result).to_pylist()
    assert sorted(run["batch"] for run in runs) == [batch.number for batch in plan.batches]
    assert sorted(completed(result)) == [batch.number for batch in plan.batches]
    assert {run["status"] for run in runs} == {"completed"}
    places = {(run["block"], run["host_id"]) for run in runs}
    assert len(places) == plan.blocks
    return {host for _, host in places}


def check_answer(done_output: str, words: str) -> None:
    assert "`long` takes" in done_output or "`long` is" in done_output
    assert words in done_output


@pytest.mark.long("places a comparison on this host")
def test_parts_of_this_host_make_one_answer(tmp_path: Path, env: dict[str, str]) -> None:
    done = execute(words_of(tmp_path, "local:2"), env)
    assert done.returncode == 1, done.stderr
    check_answer(done.stdout, "on this host alone")
    assert len(check_whole(tmp_path / "r", 2)) == 1
    again = execute(["compare-results", "--merge", tmp_path / "r", tmp_path / "r"], env)
    assert "cannot use a result twice" in again.stderr
    refused = execute([*resume_words(tmp_path), "--budget", "5s"], env)
    assert (refused.returncode, "`--budget` is for one host" in refused.stderr) == (2, True)


@pytest.mark.long("kills a comparison and goes on with it")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_comparison_that_was_stopped_goes_on(
    tmp_path: Path, env: dict[str, str], how: signal.Signals
) -> None:
    result = tmp_path / "r"
    process = start(words_of(tmp_path, "local", ("sleep 0.3", "sleep 0.4")), env)
    while not completed(result):
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    process.send_signal(how)
    process.communicate()
    assert process.returncode == (130 if how is signal.SIGINT else -how)
    before = completed(result)
    done = execute(resume_words(tmp_path), env)
    assert done.returncode == 1, done.stderr
    check_whole(result, 1)
    assert before.items() <= completed(result).items()


@pytest.mark.long("places a comparison on this host")
def test_a_command_that_fails_is_named_with_its_host(tmp_path: Path, env: dict[str, str]) -> None:
    done = execute(words_of(tmp_path, "local", ("true", "false")), env)
    assert done.returncode == 4
    assert "error: `long` failed on host `" in done.stderr
    assert "with exit code 1" in done.stderr


@pytest.mark.needs_ssh_hosts
@pytest.mark.long("starts three hosts and compares on them")
def test_three_hosts_that_ssh_reaches_give_one_verdict(tmp_path: Path) -> None:
    if lacking := ssh_hosts.missing():
        pytest.skip(lacking)
    with ssh_hosts.ssh_hosts() as hosts, environment() as env:
        file = hosts.write(tmp_path / "hosts.toml")
        done = execute(words_of(tmp_path, f"ssh:{file}"), env)
        assert done.returncode in {0, 1}, done.stderr
        check_answer(done.stdout, "on hosts like these 3, one more of which is expected")
        ids = check_whole(tmp_path / "r", 3)
        assert len(ids) == 3
        provenance = json.loads((tmp_path / "r" / "provenance.json").read_text())
        assert set(provenance["hosts"]) == ids
        assert [list(host.parts.glob("*")) for host in hosts.by_name.values()] == [[], [], []]


@pytest.mark.needs_slurm
@pytest.mark.long("starts a cluster and compares on its nodes")
def test_nodes_of_slurm_give_one_verdict(tmp_path: Path) -> None:
    if lacking := slurm_cluster.missing():
        pytest.skip(lacking)
    with slurm_cluster.cluster(3) as cluster, environment() as found:
        env = {**cluster.environment, **found, "SLURM_CONF": cluster.environment["SLURM_CONF"]}
        done = execute(words_of(tmp_path, "slurm:main"), {**env, "STEELYARD_LONGEST_WAIT_S": "0.1"})
        assert done.returncode == 1, done.stderr
        # The nodes are this machine: nothing is said of others.
        check_answer(done.stdout, "on this host alone")
        nodes = {host.rpartition(":")[2] for host in check_whole(tmp_path / "r", 3)}
        assert nodes <= set(cluster.names)
        assert len(nodes) >= 2
