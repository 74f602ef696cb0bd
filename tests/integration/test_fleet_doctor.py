"""``steelyard fleet doctor`` and what follows a placed study, with real parts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from fixtures.slurm_cluster import cluster, missing

if TYPE_CHECKING:
    from pathlib import Path

STEELYARD = (sys.executable, "-m", "steelyard")


def steelyard(*words: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*STEELYARD, *words], capture_output=True, text=True, env=environment or dict(os.environ), check=False
    )


@pytest.mark.long("places parts that wait for a quiet machine")
@pytest.mark.timeout(400)
@pytest.mark.timing
def test_one_host_is_described_and_not_tested(tmp_path: Path) -> None:
    result = tmp_path / "result"
    done = steelyard("fleet", "doctor", "--on", "local:1", "--out", str(result), "--json")
    assert done.returncode in {0, 1}, done.stderr
    found = json.loads(done.stdout)
    (facts,) = found["hosts"].values()
    assert facts["kernel"] == os.uname().release
    assert (found["differences"], found["outliers"], found["is_tested"]) == ({}, {}, False)
    assert set(found["unfit"]) == set(found["hosts"])


@pytest.mark.long("places parts that wait for a quiet machine")
@pytest.mark.timeout(400)
@pytest.mark.timing
def test_a_host_that_does_not_answer_is_counted(tmp_path: Path) -> None:
    """A program called ``ssh`` stands for it, and for one that is this machine."""
    ssh, hosts = tmp_path / "ssh", tmp_path / "hosts.toml"
    ssh.write_text(
        "#!/bin/sh\nfor last; do before=$target target=$last; done\n"
        '[ "$before" = here ] || { echo "ssh: Connection refused" >&2; exit 255; }\nexec sh -c "$last"\n'
    )
    ssh.chmod(0o755)
    words = f'folder = "{tmp_path}/parts"\nsteelyard = {json.dumps(STEELYARD)}\n'
    hosts.write_text("".join(f'[hosts.{name}]\ntarget = "{name}"\n{words}' for name in ("here", "away")))
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "STEELYARD_LONGEST_WAIT_S": "0.1",
    }
    asked = ("--on", f"ssh:{hosts}", "--out", str(tmp_path / "result"))
    done = steelyard("fleet", "doctor", *asked, environment=environment)
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("1 of 2 hosts took part\n")
    assert "host `away` does not answer: ssh: Connection refused" in done.stderr


@pytest.mark.needs_slurm
@pytest.mark.slow
@pytest.mark.timing
@pytest.mark.timeout(900)
@pytest.mark.skipif(missing() is not None, reason=f"{missing()}")
def test_nodes_of_one_machine_are_shown_as_one_and_packed_without_names(tmp_path: Path) -> None:
    result, package = tmp_path / "result", tmp_path / "anonymous.zip"
    with cluster(3) as made:
        done = steelyard(
            *("fleet", "doctor", "--on", "slurm:main", "--out", str(result), "--json"),
            environment=made.environment,
        )
    found = json.loads(done.stdout)
    assert sorted(found["hosts"]) == ["n1", "n2", "n3"], done.stderr
    assert [sorted(each) for each in found["machines"]] == [["n1", "n2", "n3"]]
    assert found["is_tested"] is False
    page = steelyard("report", str(result))
    assert "n1, n2, n3" in page.stdout, page.stderr
    assert "nodes of one machine" in (result / "report.html").read_text()
    packed = steelyard("pack", str(result), "--anonymous", "--output", str(package))
    assert packed.returncode == 0, packed.stderr
    assert steelyard("verify", str(package)).returncode == 0
    machine = next(iter(json.loads((result / "provenance.json").read_text())["hosts"])).partition(":")[0]
    copied = tmp_path / "copied"
    subprocess.run([sys.executable, "-m", "zipfile", "-e", str(package), str(copied)], check=True)
    assert not [
        path for path in copied.rglob("*") if path.is_file() and machine.encode() in path.read_bytes()
    ]
    assert not list(copied.rglob("placed"))
