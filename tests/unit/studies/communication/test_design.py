from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from steelyard.errors import CapabilityError, UsageError
from steelyard.model.plan import read_plan
from steelyard.run.isolation.interface import Availability
from steelyard.studies.communication import STUDY
from steelyard.studies.communication.design import endpoints_command, plan, together
from steelyard.studies.communication.fixtures import options_of, run_inputs
from steelyard.studies.communication.options import CommunicationOptions, settle
from steelyard.studies.communication.places import links_of, nominal_of
from steelyard.studies.communication.transport.interface import (
    HERE,
    Invocation,
    Place,
    TraceOptions,
    Transport,
)
from steelyard.studies.communication.transport.link_options import NominalLink

if TYPE_CHECKING:
    from collections.abc import Mapping

    from steelyard.model import Plan

LINKED = Place(addresses=("10.0.0.1", "10.0.0.2"), enter=(("in", "a"), ("in", "b")))


class Written(Transport):
    """A transport whose commands are written down and never run."""

    def __init__(self, name: str, *, crosses: bool = False, absent: str = "") -> None:
        self.name = name
        self.crosses_hosts = crosses
        self._absent = absent

    def probe(self) -> Availability:
        return Availability.no(self._absent, "apt-get install it") if self._absent else Availability.yes("1")

    def facts(self) -> Mapping[str, str]:
        return {}

    def invocations(
        self, plan: Path, out: Path, options: TraceOptions, place: Place = HERE
    ) -> tuple[Invocation, ...]:
        words = (self.name, "--plan", str(plan), "--out", str(out), *options.arguments())
        if place == HERE:
            return (Invocation(words),)
        return tuple(Invocation((*enter, *words), {"RANK": str(n)}) for n, enter in enumerate(place.enter))


KNOWN = {
    each.name: each
    for each in (Written("pipe"), Written("tcp", crosses=True), Written("mpich", absent="no mpirun"))
}


def designed(links: tuple[str, ...] = ("none",), **options: Any) -> Plan:
    settled = settle(CommunicationOptions.model_validate(options))
    return plan(settled, KNOWN, links, (0, 1))


def test_every_replication_launches_every_transport_once_and_says_which_are_absent() -> None:
    found = designed(replications=4)
    assert [cell.levels["transport"] for cell in found.cells] == ["pipe", "tcp", "mpich"]
    assert "no mpirun" in (found.cells[2].missing or "")
    assert "apt-get install it" in (found.cells[2].missing or "")
    assert Counter((batch.block, batch.cell) for batch in found.batches) == Counter(
        (block, cell) for block in range(4) for cell in (0, 1)
    )


def test_a_run_reads_its_list_and_leaves_its_trace_in_its_folder() -> None:
    execution = designed(budget=2.5).cells[0].execution
    assert execution is not None
    command = " ".join(execution.command)
    assert command.startswith("pipe --plan {files}/plan.csv --out {files} ")
    assert "--budget-ms 2500" in command
    assert "--canary {files}.canary" in command
    assert "--cpus 0,1" in command


def test_an_absent_transport_that_was_asked_for_is_an_error_with_its_reason() -> None:
    with pytest.raises(CapabilityError, match="`mpich` does not work on this machine: no mpirun"):
        designed(transport=("pipe", "mpich"))


def test_over_a_link_go_only_transports_that_leave_a_host() -> None:
    found = designed(("rate=1gbit",))
    assert [cell.levels for cell in found.cells] == [{"transport": "tcp", "link": "rate=1gbit"}]
    (cell,) = found.cells
    assert cell.execution is not None
    assert cell.execution.command == ("sh", "{files}/endpoints.sh")
    with pytest.raises(UsageError, match="`--transport pipe` works within one host only"):
        designed(("rate=1gbit",), transport=("pipe",))


def test_both_ends_of_a_link_are_started_at_their_places() -> None:
    command = endpoints_command(KNOWN["tcp"], Path("/trace"), TraceOptions(), LINKED)
    assert command[:2] == ("sh", "-c")
    assert "env RANK=0 in a tcp --plan /trace/plan.csv" in command[2]
    assert "env RANK=1 in b tcp --plan /trace/plan.csv" in command[2]


def test_links_are_written_in_one_way_and_wrong_ones_are_refused() -> None:
    asked = CommunicationOptions(link=("delay=50us,rate=1000mbit", "rate=1gbit,delay=50us"))
    assert links_of(settle(asked)) == ("rate=1gbit,delay=50us",)
    assert links_of(settle(CommunicationOptions())) == ("none",)
    with pytest.raises(UsageError, match="--link"):
        links_of(settle(CommunicationOptions(link=("rate=fast",))))


def test_replications_get_lists_of_their_own_and_cells_of_one_replication_the_same(tmp_path: Path) -> None:
    found = designed(operations=200, warm_up=30, replications=2, seed=9)
    texts: dict[tuple[int, int], str] = {}
    with run_inputs(found) as write_inputs:
        for batch in found.batches:
            folder = tmp_path / str(batch.number)
            folder.mkdir()
            write_inputs(batch, folder)
            texts[batch.block, batch.cell] = (folder / "plan.csv").read_text()
    assert texts[0, 0] == texts[0, 1] != texts[1, 0] == texts[1, 1]
    assert texts[0, 0].splitlines()[0] == "op,size"
    assert len(texts[0, 0].splitlines()) == 231


def test_the_options_of_a_plan_are_read_back_from_its_file(tmp_path: Path) -> None:
    asked = CommunicationOptions(quick=True, transport=("tcp",), mix={"pingpong": 2, "send": 1})
    found = plan(settle(asked), KNOWN, ("none",), None)
    found.write(tmp_path / "plan.json")
    assert options_of(read_plan(tmp_path / "plan.json")) == settle(asked)
    assert STUDY.request(asked) == STUDY.request(options_of(found))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"smallest": 10, "largest": 9}, "is above"),
        ({"mix": {"send": 1}}, "no `pingpong`"),
        ({"hostfile": "hosts", "link": ("rate=1gbit",)}, "--hostfile"),
    ],
)
def test_options_that_contradict_each_other_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        settle(CommunicationOptions.model_validate(options))


@pytest.mark.parametrize(
    ("zero", "one", "expected"), [(0, 0, 0), (3, 1, 1), (0, 2, 2), (5, 3, 5), (3, 0, 3), (3, 3, 3)]
)
def test_two_endpoints_end_with_the_status_that_says_most(zero: int, one: int, expected: int) -> None:
    import subprocess  # noqa: PLC0415 - this test alone starts processes

    command = together([Invocation(("sh", "-c", f"exit {status}")) for status in (zero, one)])
    assert subprocess.run(command, check=False).returncode == expected


def test_a_stated_network_makes_no_link() -> None:
    stated = settle(CommunicationOptions(link=("10Gbps,50us",)))
    assert links_of(stated) == ("none",)
    assert nominal_of(stated) == NominalLink(1.25e9, 5e-5)
    assert nominal_of(settle(CommunicationOptions(link=("rate=1gbit",)))) is None


@pytest.mark.parametrize(
    ("links", "said"),
    [
        (("10Gbps,50us", "1Gbps,20us"), "states two existing networks"),
        (("10Gbps,50furlongs",), "the latency is `50furlongs`"),
        (("0Gbps,50us",), "the rate is `0Gbps`"),
        (("10Gbps",), "neither `RATE,LATENCY`"),
    ],
)
def test_a_network_that_is_stated_wrongly_is_refused(links: tuple[str, ...], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        links_of(settle(CommunicationOptions(link=links)))
