"""What is planned for hosts that differ, and how they are asked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from steelyard.design.worker_counts import HostFacts
from steelyard.errors import RunError
from steelyard.record.placed.journal import JOURNAL_NAME
from steelyard.record.provenance import PROVENANCE_NAME
from steelyard.run.hosts.engine import Pending
from steelyard.run.isolation.interface import Availability
from steelyard.run.progress import Silent
from steelyard.studies.host_facts import host_facts, planned_for
from steelyard.studies.placed import describing
from steelyard.studies.placed.describing import (
    Described,
    common_facts,
    common_technology,
    describe_hosts,
    differences,
)
from steelyard.studies.placed.part import execute_part

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

HOSTS = {
    "a": Described(HostFacts(8, 4, 2, 1), {"bare": Availability.yes("1"), "docker": Availability.yes("2")}),
    "b": Described(
        HostFacts(6, 6, 1, 1),
        {"bare": Availability.yes("1"), "docker": Availability.no("no daemon", "start it")},
    ),
}


def test_a_plan_is_made_for_what_all_hosts_have() -> None:
    facts = common_facts(HOSTS)
    assert facts == HostFacts(6, 4, 1, 1)
    assert differences(HOSTS) == [
        "hosts differ in CPUs: 6 (b); 8 (a); the plan is made for 6",
        "hosts differ in cores: 4 (a); 6 (b); the plan is made for 4",
        "hosts differ in last-level caches: 1 (b); 2 (a); the plan is made for 1",
    ]
    assert common_technology(HOSTS, "bare") == Availability.yes("1")
    assert common_technology(HOSTS, "docker") == Availability.no(
        "not on every host: `b`: no daemon", "start it"
    )
    assert common_technology(HOSTS, "vm").reason == (
        "not on every host: `a`: it was not tried there; `b`: it was not tried there"
    )
    assert differences({"a": HOSTS["a"]}) == []
    own = host_facts()
    with planned_for(facts):
        assert host_facts() == facts
    assert host_facts() == own


class Answering:
    """Hosts that say what they are at once; the second one is strange, the third never begins."""

    is_here = False
    names = ()
    size = width = 3

    def __init__(self, strange: str | None = None) -> None:
        self.strange, self.is_cancelled = strange, False
        self.parts: list[str] = []

    def place(self, parts: Sequence[Path], _hosts: Sequence[str] = (), /) -> None:
        self.parts += [part.name for part in parts]
        if self.strange is None:
            return
        for part in parts[:2]:
            assert execute_part(part, ["x"], Silent())
        (start,) = parts[1].glob("starts/*")
        assert (start / JOURNAL_NAME).read_bytes() == b""
        said = json.loads((start / PROVENANCE_NAME).read_text())
        said["host_id"], said["host"]["hostname"] = "2", "strange"
        said["host"]["facts"] = json.loads(self.strange)
        (start / PROVENANCE_NAME).write_text(json.dumps(said))

    def pending(self) -> Pending:
        return Pending(frozenset(self.parts[2:]) if self.strange else frozenset())

    def cancel(self) -> None:
        self.is_cancelled = True


@pytest.mark.parametrize(
    ("facts", "is_used"),
    [
        ('{"cpu_count": 64, "core_count": 64}', True),
        ('{"cpu_count": 1, "core_count": 64}', False),
        ('{"cpu_count": "many"}', False),
        ("null", False),
    ],
)
def test_hosts_say_what_they_are(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    facts: str,
    *,
    is_used: bool,
) -> None:
    monkeypatch.setattr(describing, "LATER_S", 0.1)
    engine = Answering(facts)
    found = describe_hosts(lambda _: engine, tmp_path, ["bare", "absent"], Silent())
    own = found.pop("strange", None)
    assert (own is not None) is is_used
    ((_, here),) = found.items()
    assert here.facts == host_facts()
    assert here.technologies["bare"].available
    assert engine.is_cancelled
    assert f"{1 + is_used} of 3 hosts said what they are" in capsys.readouterr().err


def test_no_plan_is_made_for_hosts_that_say_nothing(tmp_path: Path) -> None:
    engine = Answering()
    with pytest.raises(RunError, match="no host said what it is"):
        describe_hosts(lambda _: engine, tmp_path, ["bare"], Silent())
    assert engine.is_cancelled
    with pytest.raises(RunError):
        describe_hosts(lambda _: engine, tmp_path, ["bare"], Silent())
    assert engine.parts == [f"describe-{number:04d}" for number in range(1, 7)]
