"""A replication study on several devices at once: three nodes of a real Slurm, three hosts by ssh."""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fixtures import slurm_cluster, ssh_hosts
from integration.study_process import (
    check_whole,
    completed,
    environment,
    execute,
    recorded,
    start,
    started,
    wait_for_batches,
)
from steelyard.model.finding import read_findings
from steelyard.model.plan import read_plan
from steelyard.record.tables import read_runs
from steelyard.studies.replication.programs import BENCHMARKS, find_programs

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

    from fixtures.slurm_cluster import Cluster
    from fixtures.ssh_hosts import Hosts

DEVICES = 3
BLOCKS = 5
LONGEST_S = 400.0
STUDY_FILE = f"""
study = "replication"
quick = true
blocks = {BLOCKS}
experiments = ["e2"]
configurations = ["none-baseline"]
settings = ["native"]
containers = "none"

[e2]
unprobed_calls = 2000
"""


def has_programs() -> bool:
    found = find_programs()
    return "java" in found.installed and BENCHMARKS in found.built


pytestmark = [
    pytest.mark.timing,
    pytest.mark.needs_replication,
    pytest.mark.skipif(not has_programs(), reason="needs Java and `make deps-replication`"),
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    if lacking := slurm_cluster.missing():
        pytest.skip(lacking)
    with slurm_cluster.cluster(DEVICES) as made:
        yield made


@pytest.fixture
def slurm_env(cluster: Cluster) -> Iterator[dict[str, str]]:
    with environment() as found:
        yield {**cluster.environment, **found, "SLURM_CONF": cluster.environment["SLURM_CONF"]} | {
            "STEELYARD_LONGEST_WAIT_S": "0.1"
        }


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    if lacking := ssh_hosts.missing():
        pytest.skip(lacking)
    with ssh_hosts.ssh_hosts() as made:
        yield made


def words_of(folder: Path, on: str) -> list[str]:
    file = folder / "study.toml"
    file.write_text(STUDY_FILE, encoding="utf-8")
    return ["run", "replication", "--study-file", str(file), "--out", str(folder / "r"), "--on", on]


def finish(process: subprocess.Popen[str]) -> None:
    _, said = process.communicate(timeout=LONGEST_S)
    assert process.returncode == 0, said


def runs_of_hosts(result: Path) -> Counter[str]:
    """Check that nothing is lost or doubled; give the runs of each host, by its id."""
    runs = read_runs(result).select(["host_id", "status", "message"]).to_pylist()
    assert [each for each in runs if each["status"] != "completed"] == []
    check_whole(result)
    plan = read_plan(result / "plan.json")
    assert len(plan.batches) == DEVICES * BLOCKS * len(plan.cells)
    hosts = Counter(read_runs(result)["host_id"].to_pylist())
    provenance = json.loads((result / "provenance.json").read_text(encoding="utf-8"))
    assert set(provenance["hosts"]) >= set(hosts)
    return hosts


@pytest.mark.needs_slurm
@pytest.mark.long("starts a cluster and runs a replication study on its three nodes")
def test_each_node_runs_the_plan_and_nodes_of_one_machine_are_said_to_be(
    tmp_path: Path, cluster: Cluster, slurm_env: dict[str, str]
) -> None:
    finish(start(words_of(tmp_path, "slurm:main"), slurm_env))
    found = runs_of_hosts(tmp_path / "r")
    assert {host.rpartition(":")[2] for host in found} == set(cluster.names)
    assert set(found.values()) == {BLOCKS * 2}, "one device measured more than another"
    assert len(list((tmp_path / "r" / "placed").glob("part-*"))) == DEVICES, "a fast device may take more"
    findings = read_findings(tmp_path / "r" / "findings.json")
    assert [each.verdict for each in findings.of("hosts")] == ["one machine"]
    (scatter,) = findings.of("devices")
    assert (scatter.verdict, scatter.facts["devices"]) == ("undecided", 1)
    compared = findings.of("comparison")
    assert {each.subject["first"] for each in compared} == {"n1-native"}
    assert {each.subject["second"] for each in compared} == {"n2-native", "n3-native"}
    assert {each.facts["played"] for each in compared} == {"hosts of one machine"}


@pytest.mark.needs_slurm
@pytest.mark.long("kills the process that placed a study on three nodes, and resumes it")
def test_the_study_of_a_killed_submitter_is_resumed_and_every_launch_counts_once(
    tmp_path: Path, slurm_env: dict[str, str]
) -> None:
    process = start(words_of(tmp_path, "slurm:main"), slurm_env)
    result = tmp_path / "r"
    deadline_s = time.monotonic() + LONGEST_S
    while len(completed(result)) < 3:
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
    process.kill()
    process.communicate()
    assert len(completed(result)) < DEVICES * BLOCKS * 2, "the study was over before its submitter was killed"
    finish(start(["run", "replication", "--out", str(result), "--resume"], slurm_env))
    assert len(runs_of_hosts(result)) == DEVICES


@pytest.mark.needs_ssh_hosts
@pytest.mark.long("starts three hosts and runs a replication study on them")
def test_three_hosts_are_three_devices_with_a_prediction_for_one_more(tmp_path: Path, hosts: Hosts) -> None:
    file = hosts.write(tmp_path / "hosts.toml")
    with environment() as env:
        finish(start(words_of(tmp_path, f"ssh:{file}"), env))
    assert set(runs_of_hosts(tmp_path / "r").values()) == {BLOCKS * 2}
    findings = read_findings(tmp_path / "r" / "findings.json")
    assert [each.verdict for each in findings.of("hosts")] == ["independent"]
    (scatter,) = findings.of("devices")
    assert scatter.facts["devices"] == DEVICES
    assert scatter.estimates["new_device"].high is not None
    assert scatter.estimates["between"].units == DEVICES
    assert {each.verdict for each in findings.of("device")} == {"real"}


@pytest.mark.needs_ssh_hosts
@pytest.mark.long("loses one of three hosts while they run a study")
def test_what_a_host_lacks_that_went_away_is_run_by_the_others(tmp_path: Path, hosts: Hosts) -> None:
    file = hosts.write(tmp_path / "hosts.toml", lost_after_s=4)
    result = tmp_path / "r"
    lost = next(iter(hosts.by_name.values()))
    with environment() as env:
        process = start(words_of(tmp_path, f"ssh:{file}"), env)
        deadline_s = time.monotonic() + LONGEST_S
        try:
            while len(completed(result)) < 2:
                assert process.poll() is None, process.communicate()[1]
                assert time.monotonic() < deadline_s
                time.sleep(0.05)
            lost.kill()
            finish(process)
        finally:
            lost.restore()
    left = runs_of_hosts(result)
    assert len(left) in {DEVICES - 1, DEVICES}
    assert read_findings(result / "findings.json").of("comparison")


@pytest.mark.needs_ssh_hosts
@pytest.mark.slow
@pytest.mark.timeout(2 * LONGEST_S)
def test_a_host_without_java_is_named_and_the_others_run_the_study(tmp_path: Path, hosts: Hosts) -> None:
    lacking = next(iter(hosts.by_name.values()))
    java = Path(str(shutil.which("java"))).resolve()
    lacking.hide(java.parents[1])
    try:
        with environment() as env:
            process = start(words_of(tmp_path, f"ssh:{hosts.write(tmp_path / 'hosts.toml')}"), env)
            _, said = process.communicate(timeout=LONGEST_S)
    finally:
        lacking.kill()
        lacking.start()
    assert process.returncode == 0, said
    assert f"host `{lacking.name}` is left out" in said
    assert "`java` is not installed (repair: make deps-replication)" in said
    assert len(runs_of_hosts(tmp_path / "r")) == DEVICES - 1


@pytest.mark.needs_slurm
@pytest.mark.slow
@pytest.mark.timeout(2 * LONGEST_S)
@pytest.mark.parametrize("fault", ["slurmctld", "slurmd", "drain"])
def test_daemons_and_nodes_that_go_away_cost_no_launch_and_double_none(
    tmp_path: Path, cluster: Cluster, slurm_env: dict[str, str], fault: str
) -> None:
    result = tmp_path / "r"
    with started(words_of(tmp_path, "slurm:main"), slurm_env) as process:
        wait_for_batches(process, result, 3)
        before = recorded(result)
        if fault == "drain":
            cluster.ask("scontrol", "update", "nodename=n2", "state=drain", "reason=test")
        else:
            name = fault if fault == "slurmctld" else "n2"
            cluster.kill(name)
            time.sleep(12)  # beyond SlurmdTimeout the controller gives the node up
            cluster.start(name)
        try:
            _, said = process.communicate(timeout=LONGEST_S)
        finally:
            if fault == "drain":
                cluster.ask("scontrol", "update", "nodename=n2", "state=resume")
    assert process.returncode == 0, said
    assert "Traceback" not in said
    assert len(runs_of_hosts(result)) >= DEVICES - 1
    assert before <= recorded(result)
    cluster.wait_idle()
    assert cluster.ask("squeue", "--noheader") == ""


def test_what_needs_several_devices_at_once_is_refused(tmp_path: Path) -> None:
    words = words_of(tmp_path, "local:2")
    with environment() as env:
        done = execute([*words, "--devices", str(tmp_path / "devices.toml")], env)
        assert done.returncode == 2
        assert "cannot place `--devices` on other hosts" in done.stderr
        assert "Traceback" not in done.stderr
        assert not (tmp_path / "r" / "plan.json").exists()
