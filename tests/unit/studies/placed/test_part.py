"""What a host refuses before it runs anything of a part."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from fixtures.outcomes import make_plan
from steelyard.design.worker_counts import HostFacts
from steelyard.errors import CapabilityError
from steelyard.model.plan import PLAN_NAME
from steelyard.record.placed.journal import JOURNAL_NAME, JournalReader
from steelyard.run.progress import Silent
from steelyard.studies.host_facts import planned_for
from steelyard.studies.placed.part import NODE_VARIABLE, execute_part
from steelyard.studies.placed.parts import starts_of, write_parts

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.model import Plan


def plan_for(cpus: int, workers: int) -> Plan:
    """Give a plan of a host with so many CPUs, one cell of which has so many workers."""
    made = make_plan()
    first, *rest = made.cells
    assert first.execution is not None
    cells = (replace(first, execution=replace(first.execution, workers=workers)), *rest)
    return replace(made, id="", cells=cells, options={"cpu_count": cpus}).freeze()


def begin(folder: Path, plan: Plan, *, cpus: int) -> Path:
    """Begin a part of a plan on a host with so many CPUs."""
    plan.write(folder / PLAN_NAME)
    (part,) = write_parts(folder, plan.id, [(0, 1)])
    facts = HostFacts(cpus, cpus, 1, 1, hardware_virtualisation=False)
    with planned_for(facts):
        execute_part(part, ["steelyard", "run-part"], Silent())
    return part


@pytest.mark.parametrize(("cpus", "workers"), [(4, 3), (4, 4), (3, 5)])
def test_a_host_with_too_few_cpus_is_refused_by_name_and_records_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cpus: int, workers: int
) -> None:
    monkeypatch.setenv(NODE_VARIABLE, "n7")
    with pytest.raises(CapabilityError) as caught:
        begin(tmp_path, plan_for(cpus, workers), cpus=2)
    assert caught.value.code == "capability.host-cpus"
    assert caught.value.message == (f"host `n7` offers 2 CPUs to this part; the study is planned for {cpus}")
    assert "--exclude=NODE" in str(caught.value.hint)
    assert not list(tmp_path.glob("placed/*/starts/*"))


@pytest.mark.timing
@pytest.mark.parametrize(("cpus", "workers"), [(4, 2), (2, 4)])
def test_a_host_with_fewer_cpus_runs_a_part_that_needs_no_more(
    tmp_path: Path, cpus: int, workers: int
) -> None:
    part = begin(tmp_path, plan_for(cpus, workers), cpus=2)
    (start,) = starts_of(part)
    assert {each.batch for each in JournalReader(start / JOURNAL_NAME).completed()} == {0, 1}
