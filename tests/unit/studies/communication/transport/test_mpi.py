from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from steelyard.errors import CapabilityError, DesignError
from steelyard.studies.communication.transport import mpi_start
from steelyard.studies.communication.transport.interface import HERE, Place, TraceOptions
from steelyard.studies.communication.transport.mpi import TRANSPORTS, Installation, Mpich, OpenMpi, network_of

ON_A_LINK = Place(
    addresses=("10.77.0.1", "10.77.0.2"),
    enter=(("enter", "a"), ("enter", "b")),
    agent=Path("/link/agent"),
)


def program(folder: Path, name: str, says: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{says}'\n", encoding="ascii")
    path.chmod(0o755)
    return path


def placed(
    transport: Mpich | OpenMpi, monkeypatch: pytest.MonkeyPatch, version: str = "4.1.4"
) -> Mpich | OpenMpi:
    """Give a transport that is not asked whether it is installed."""
    found = Installation(Path("/mpi/bin/mpicc"), Path("/mpi/bin/mpirun"), version)
    monkeypatch.setitem(transport.__dict__, "installation", found)
    monkeypatch.setattr(type(transport), "folder", Path("/built"))
    return transport


def command_at(transport: Mpich | OpenMpi, place: Place) -> str:
    (invocation,) = transport.invocations(Path("plan.csv"), Path("out"), TraceOptions(), place)
    return " ".join(invocation.command).partition(" -- ")[2]


def test_the_transports_have_the_names_of_the_factor() -> None:
    assert [transport.name for transport in TRANSPORTS] == ["openmpi", "openmpi-tcp", "mpich"]
    assert [transport.crosses_hosts for transport in TRANSPORTS] == [False, True, True]


def test_a_missing_implementation_is_a_capability_with_its_repair(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    for transport in (OpenMpi("openmpi", crosses_hosts=False), Mpich()):
        answer = transport.probe()
        assert not answer.available
        assert f"{transport.implementation} is not installed" in (answer.reason or "")
        assert answer.repair == "make deps-communication"


def test_a_compiler_of_another_implementation_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = program(tmp_path, "mpicc", "mpicc for MPICH version 4.0.2")
    monkeypatch.setenv("STEELYARD_MPICC_OPENMPI", str(wrong))
    with pytest.raises(CapabilityError, match="is not the compiler of Open MPI"):
        _ = OpenMpi("openmpi", crosses_hosts=False).installation


def test_a_starter_of_another_implementation_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = program(tmp_path, "mpicc", "mpicc for MPICH version 4.0.2")
    monkeypatch.setenv("STEELYARD_MPICC_MPICH", str(compiler))
    with pytest.raises(CapabilityError, match="has no `mpirun` beside it"):
        _ = Mpich().installation
    program(tmp_path, "mpirun", "mpirun (OpenRTE) 4.1.4")
    with pytest.raises(CapabilityError, match="is not of MPICH"):
        _ = Mpich().installation
    program(tmp_path, "mpirun", "HYDRA build details:")
    assert Mpich().installation == Installation(compiler, tmp_path / "mpirun", "4.0.2")


def test_shared_memory_does_not_leave_a_host(monkeypatch: pytest.MonkeyPatch) -> None:
    transport = placed(OpenMpi("openmpi", crosses_hosts=False), monkeypatch)
    with pytest.raises(DesignError, match="works within one host only"):
        command_at(transport, ON_A_LINK)


def test_open_mpi_on_a_link_uses_its_network_and_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    command = command_at(placed(OpenMpi("openmpi-tcp", crosses_hosts=True), monkeypatch), ON_A_LINK)
    assert command.startswith("enter a /mpi/bin/mpirun --bind-to none --host 10.77.0.1:1,10.77.0.2:1 ")
    assert "--mca btl_tcp_if_include 10.77.0.0/30" in command
    assert "--mca oob_tcp_if_include 10.77.0.0/30" in command
    assert "--mca plm rsh --mca plm_rsh_agent /link/agent" in command
    assert command.endswith(
        "-np 2 /built/rank --transport openmpi-tcp --plan plan.csv --out out --block 256 --probes 10"
    )


def test_open_mpi_here_asks_for_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    through_memory = command_at(placed(OpenMpi("openmpi", crosses_hosts=False), monkeypatch), HERE)
    assert "--mca btl vader,self" in through_memory
    assert "--mca btl_vader_backing_directory {scratch}" in through_memory
    through_tcp = command_at(placed(OpenMpi("openmpi-tcp", crosses_hosts=True), monkeypatch), HERE)
    assert "--mca btl tcp,self" in through_tcp
    assert "--mca btl_tcp_if_include lo" in through_tcp


def test_a_later_open_mpi_has_other_names(monkeypatch: pytest.MonkeyPatch) -> None:
    through_memory = placed(OpenMpi("openmpi", crosses_hosts=False), monkeypatch, "5.0.3")
    assert "--mca btl sm,self --mca btl_sm_backing_directory {scratch}" in command_at(through_memory, HERE)
    through_tcp = placed(OpenMpi("openmpi-tcp", crosses_hosts=True), monkeypatch, "5.0.3")
    (invocation,) = through_tcp.invocations(Path("plan.csv"), Path("out"), TraceOptions(), ON_A_LINK)
    assert not {"plm", "plm_rsh_agent", "orte_tmpdir_base"} & set(invocation.command)
    assert invocation.environment["PRTE_MCA_plm_ssh_agent"] == "/link/agent"


def test_mpich_on_a_link_and_with_a_hostfile(monkeypatch: pytest.MonkeyPatch) -> None:
    transport = placed(Mpich(), monkeypatch)
    assert "-hosts 10.77.0.1,10.77.0.2 -ppn 1 -launcher ssh -launcher-exec /link/agent -np 2" in command_at(
        transport, ON_A_LINK
    )
    assert "-f /cluster/hosts -ppn 1 -np 2" in command_at(transport, Place(hostfile=Path("/cluster/hosts")))


@pytest.mark.parametrize(
    ("first", "second", "network"),
    [
        ("10.0.0.5", "10.0.1.9", "10.0.0.0/23"),
        ("192.168.1.4", "192.168.1.4", "192.168.1.4/32"),
        ("10.0.0.1", "192.168.0.1", None),
        ("node1", "10.0.0.1", None),
    ],
)
def test_the_network_of_two_addresses(first: str, second: str, network: str | None) -> None:
    assert network_of(Place(addresses=(first, second))) == network


@pytest.mark.parametrize(
    ("said", "status", "meaning"),
    [
        (
            "Open RTE was unable to open the hostfile:\n    /x/hosts\n",
            2,
            "cannot open the hostfile `/x/hosts`",
        ),
        ("unable to open host file: /x/hosts\n", 2, "cannot open the hostfile `/x/hosts`"),
        ("There are not enough slots available in the system", 2, "not enough places"),
        (
            "ssh: Could not resolve hostname n9: Name or service not known",
            4,
            "cannot reach a host: Could not resolve",
        ),
        ("noticed that process rank 1 with PID 0 on node vm exited on signal 9 (Killed).", 3, "rank 1 was"),
        (
            "=   PID 41 RUNNING AT vm\n=   EXIT CODE: 9\nWITH THE EXIT STRING: Killed (signal 9)\n",
            3,
            "rank 0 was killed by signal 9",
        ),
        (
            "error: two ranks are needed: `mpirun -np 2`\nsrun: error: n2: task 1: Exited with exit code 2\n",
            4,
            "each rank is alone",
        ),
        (
            "srun: error: Couldn't find the specified plugin name for mpi/pmix looking at all files\n",
            4,
            "Slurm has no such plug-in",
        ),
        (
            "srun: error: task 1 launch failed: Unspecified error\nsrun: error: n1: task 0: Killed\n",
            4,
            "Slurm cannot start rank 1 on its node: Unspecified error",
        ),
        (
            "srun: error: Task launch for StepId=1.3 failed on node n2: away\nsrun: Job step aborted\n",
            4,
            "Slurm cannot start a rank on `n2`: away",
        ),
        (
            "slurmstepd-n1: error: execve(): /built/rank: No such file or directory\n",
            4,
            "the rank program `/built/rank` is not on every node",
        ),
        ("srun: error: n2: task 1: Killed\n", 3, "rank 1 was lost: Killed"),
    ],
)
def test_what_an_mpirun_says_becomes_one_line(said: str, status: int, meaning: str, tmp_path: Path) -> None:
    (tmp_path / "header.0.json").write_text('{\n "pid": 41\n}', encoding="ascii")
    found = mpi_start.find_cause(said, tmp_path)
    assert found is not None
    assert found[0] == status
    assert meaning in found[1]


def start(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", "-S", mpi_start.__file__, *words]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)


def test_a_missing_mpirun_names_the_repair() -> None:
    done = start("--", "/nonexistent/mpirun")
    assert done.returncode == 127
    assert done.stderr.splitlines() == [
        "error: cannot start `/nonexistent/mpirun`: No such file or directory",
        "hint: make deps-communication",
    ]


def test_only_what_ranks_say_goes_through() -> None:
    talk = "echo '{\"found\": 1}'; echo banner; echo 'error: too large' >&2; echo page >&2; exit 1"
    done = start("--", "sh", "-c", talk)
    assert (done.returncode, done.stdout, done.stderr) == (1, '{"found": 1}\n', "error: too large\n")


def test_what_slurm_says_of_itself_goes_through() -> None:
    """By it a node that was lost is told from ranks that failed."""
    said = "srun: error: Node failure on n2"
    talk = f"echo '{said}' >&2; echo 'srun: error: n2: task 1: Killed' >&2; echo 'srun: aborted' >&2; exit 1"
    assert start("--", "sh", "-c", talk).stderr.splitlines()[:2] == [said, "error: rank 1 was lost: Killed"]


def test_an_unknown_failure_is_quoted_with_its_status() -> None:
    done = start("--", "sh", "-c", "echo 'no fabric here' >&2; exit 77")
    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == "error: `mpirun` ended with status 77: no fabric here"


def test_a_failure_after_the_begin_is_a_lost_rank(tmp_path: Path) -> None:
    header = tmp_path / "header.0.json"
    done = start(
        "--started", str(header), "--", "sh", "-c", f"touch {header}; echo daemon gone >&2; exit 205"
    )
    assert done.returncode == 3
    assert done.stderr.splitlines()[0] == (
        "error: a rank was lost, `mpirun` ended with status 205: daemon gone"
    )


def test_a_killed_mpirun_is_a_lost_run() -> None:
    done = start("--", "sh", "-c", "kill -KILL $$")
    assert done.returncode == 3
    assert done.stderr.splitlines()[0] == "error: `mpirun` was killed by signal 9"


def test_ranks_that_never_begin_are_ended_in_time(tmp_path: Path) -> None:
    begin = time.monotonic()
    started = ["--started", str(tmp_path / "header.0.json"), "--start-limit-s", "0.5"]
    done = start(*started, "--", "sh", "-c", f"sleep 50 & echo $! > {tmp_path}/child; wait")
    assert time.monotonic() - begin < 20
    assert done.returncode == 4
    assert done.stderr.startswith("error: both ranks were not at work within 0.5 s\nhint: ")
    child = int((tmp_path / "child").read_text(encoding="ascii"))
    assert mpi_start.start_time(child) is None, "a child outlives the start"


def test_a_child_that_left_its_family_is_ended_too(tmp_path: Path) -> None:
    orphan = f"(setsid sleep 50 & echo $! > {tmp_path}/child)"
    assert start("--", "sh", "-c", orphan).returncode == 0
    assert mpi_start.start_time(int((tmp_path / "child").read_text(encoding="ascii"))) is None


def test_the_scratch_is_gone_and_that_of_dead_starts_too() -> None:
    mine = mpi_start.make_scratch()
    dead = mine.with_name(f"{mpi_start.PREFIX}{os.getpid()}-1-abc")
    dead.mkdir()
    try:
        done = start("--", "sh", "-c", 'echo "error: $0 $TMPDIR" >&2', "{scratch}")
        _, word, variable = done.stderr.split()
        assert word == variable
        assert Path(word).parent == mine.parent
        assert not Path(word).exists()
        assert not dead.exists()
        assert mine.exists(), "this process is alive"
    finally:
        mine.rmdir()
