from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from steelyard.errors import CapabilityError, UsageError
from steelyard.run.isolation.attempt import Attempt
from steelyard.run.isolation.interface import Availability
from steelyard.studies.communication import pairs
from steelyard.studies.communication.design import plan
from steelyard.studies.communication.labels import label_of
from steelyard.studies.communication.options import CommunicationOptions, settle
from steelyard.studies.communication.pairs import hosts_of, in_job, pairs_of, place_of
from steelyard.studies.communication.transport.interface import HERE, Nodes, Place, TraceOptions
from steelyard.studies.communication.transport.mpi import Installation, Mpich, OpenMpi
from steelyard.studies.communication.transport.native import NATIVE

NODES = ("n1", "n2", "n3")


def options(**said: Any) -> CommunicationOptions:
    return settle(CommunicationOptions.model_validate(said))


def test_all_pairs_are_every_two_nodes_and_every_one() -> None:
    found = pairs_of(options(pairs=("all",)), NODES)
    assert found == ("n1:n1", "n1:n2", "n1:n3", "n2:n2", "n2:n3", "n3:n3")


def test_a_pair_is_measured_once_whichever_node_is_named_first() -> None:
    assert pairs_of(options(pairs=("n2:n1", "n1:n2", "n3:n3")), NODES) == ("n2:n1", "n3:n3")


@pytest.mark.parametrize(
    ("pair", "names", "said", "hint"),
    [
        ("n1:n9", NODES, "names the node `n9`", "nodes: n1, n2, n3"),
        ("n1", NODES, "`--pairs n1` is not a pair", "NODE:NODE"),
        ("n1:n2", (), "not placed on nodes that have names", "--on slurm:PARTITION"),
    ],
)
def test_a_wrong_pair_is_refused_with_the_next_step(
    pair: str, names: tuple[str, ...], said: str, hint: str
) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        pairs_of(options(pairs=(pair,)), names)
    assert hint in (caught.value.hint or "")


def test_pairs_are_no_link_and_no_file_of_hosts() -> None:
    with pytest.raises(UsageError, match="`--pairs` names nodes"):
        options(pairs=("n1:n2",), hostfile="hosts")
    with pytest.raises(UsageError, match="`--pairs` names nodes"):
        options(pairs=("n1:n2",), link=("rate=1gbit",))


def test_what_stays_within_a_host_is_measured_within_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {name: NATIVE[name] for name in ("pipe", "tcp")}
    for each in known.values():
        monkeypatch.setattr(type(each), "probe", lambda _self: Availability.yes("1"))
    asked = options(pairs=("all",), transport=("pipe", "tcp"))
    found = plan(asked, known, ("n1:n2", "n1:n1"), None)
    cells = [(cell.levels["transport"], cell.levels["link"]) for cell in found.cells]
    assert cells == [("tcp", "n1:n2"), ("pipe", "n1:n1"), ("tcp", "n1:n1")]
    assert [hosts_of(cell) for cell in found.cells] == [("n1", "n2"), ("n1",), ("n1",)]
    of_all = plan(options(pairs=("all",)), known, ("n1:n2", "n1:n1"), None)
    assert {cell.levels["transport"] for cell in of_all.cells} == {"tcp"}


def test_other_cells_need_no_host_by_name() -> None:
    found = plan(options(transport=("pipe",)), NATIVE, ("none",), None)
    assert {hosts_of(cell) for cell in found.cells} == {()}


def at(*ways: str) -> Place:
    return Place(addresses=("10.0.0.1", "10.0.0.2"), enter=((), ("step",)), nodes=Nodes(("n1", "n2"), ways))


def started(
    transport: OpenMpi | Mpich, place: Place, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, dict[str, str]]:
    found = Installation(Path("/mpi/bin/mpicc"), Path("/mpi/bin/mpirun"), "4.1.4")
    monkeypatch.setitem(transport.__dict__, "installation", found)
    monkeypatch.setattr(type(transport), "folder", Path("/built"))
    (invocation,) = transport.invocations(Path("plan.csv"), Path("out"), TraceOptions(), place)
    return " ".join(invocation.command).partition(" -- ")[2], dict(invocation.environment)


def test_srun_starts_ranks_where_it_has_the_plug_in(monkeypatch: pytest.MonkeyPatch) -> None:
    command, environment = started(
        OpenMpi("openmpi-tcp", crosses_hosts=True), at("none", "pmix", "mpirun"), monkeypatch
    )
    assert command.startswith("srun --overlap --mpi=pmix --nodes=2 --ntasks=2 --ntasks-per-node=1 ")
    assert "--nodelist=n1,n2 /built/rank --transport openmpi-tcp" in command
    assert environment["OMPI_MCA_btl"] == "tcp,self"
    assert environment["OMPI_MCA_btl_tcp_if_include"] == "10.0.0.0/30"
    command, _ = started(Mpich(), at("pmix", "pmi2", "mpirun"), monkeypatch)
    assert command.startswith("srun --overlap --mpi=pmi2 ")


def test_mpirun_starts_ranks_where_the_plug_in_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    command, environment = started(
        OpenMpi("openmpi-tcp", crosses_hosts=True), at("none", "pmi2", "mpirun"), monkeypatch
    )
    assert command.startswith("/mpi/bin/mpirun --bind-to none --host n1:1,n2:1 --map-by node --mca pml ob1 ")
    assert not any(name.startswith("OMPI_MCA") for name in environment)
    command, _ = started(Mpich(), at("none", "mpirun"), monkeypatch)
    assert command.startswith("/mpi/bin/mpirun -bind-to none -hosts n1,n2 -ppn 1 -np 2 ")


def test_a_starter_that_the_library_does_not_know_is_named() -> None:
    with pytest.raises(
        CapabilityError, match="ranks of MPICH are not started by `srun --mpi=pmix`"
    ) as caught:
        Mpich().way(Nodes(("n1", "n2"), ("pmix",)))
    assert caught.value.hint == "`--starter` pmi2 or mpirun"


def answers(command: Any, **_limits: Any) -> Attempt:
    said = "NodeName=x Arch=x86_64 NodeAddr=10.1.2.3 Port=1"
    if "--mpi=list" in command:
        said = "MPI plugin types are...\n\tnone\n\tpmi2\nspecific pmix plugin versions available: pmix_v4\n"
    return Attempt(0, said, "")


def test_the_job_of_a_pair_knows_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "attempt", answers)
    monkeypatch.setenv("SLURMD_NODENAME", "n2")
    place = place_of("n1:n2", None)
    assert place.nodes == Nodes(("n2", "n1"), ("none", "pmi2", "mpirun"))
    assert place.addresses == ("10.1.2.3", "10.1.2.3")
    assert place.enter[0] == ()
    assert "--nodelist=n1" in place.enter[1]
    assert place_of("n2:n2", None) == HERE
    assert place_of("n1:n2", "mpirun").nodes == Nodes(("n2", "n1"), ("mpirun",))


def test_an_absent_plug_in_is_named_with_those_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "attempt", answers)
    monkeypatch.setenv("SLURMD_NODENAME", "n2")
    with pytest.raises(CapabilityError, match="no `--mpi=pmix` here") as caught:
        place_of("n1:n2", "pmix")
    assert "none, pmi2, mpirun" in (caught.value.hint or "")
    with pytest.raises(CapabilityError, match="not a job of Slurm that has its nodes"):
        place_of("n1:n3", None)


def test_a_script_knows_its_job() -> None:
    text = in_job({"SLURM_JOB_ID": "7", "SLURM_JOB_NAME": "a b", "HOME": "/root"})
    assert text.startswith("export SLURM_JOB_ID=7\nexport SLURM_JOB_NAME='a b'\nleft=")
    assert "HOME" not in text


def test_what_an_earlier_launch_left_in_the_job_is_ended(tmp_path: Path) -> None:
    steps = "7.batch\n7.extern\n7.3\n7.12"
    for name, does in (("squeue", f"printf '{steps}\\n'"), ("scancel", f'echo "$@" > {tmp_path}/ended')):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\n{does}\n")
        program.chmod(0o755)
    script = in_job({"SLURM_JOB_ID": "7"})
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    subprocess.run(["sh", "-c", script], env=environment, check=True)
    assert (tmp_path / "ended").read_text() == "7.3 7.12\n"


def test_one_machine_is_not_measured_by_its_loopback_interface(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = Nodes(("n1", "n2"), ("pmix",))
    place = Place(addresses=("127.0.0.1", "127.0.0.1"), enter=((), ("step",)), nodes=nodes)
    _, environment = started(OpenMpi("openmpi-tcp", crosses_hosts=True), place, monkeypatch)
    assert "OMPI_MCA_btl_tcp_if_include" not in environment


def test_pairs_have_names_of_their_own() -> None:
    assert (
        label_of({"transport": "tcp", "link": "n1:n2", "state": "slow"})
        == "tcp between n1 and n2 (slow host)"
    )
