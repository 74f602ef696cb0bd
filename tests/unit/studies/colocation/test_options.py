from __future__ import annotations

import re

import pytest

from steelyard.errors import UsageError
from steelyard.studies.analysis_options import AnalysisOptions
from steelyard.studies.colocation.options import ColocationOptions, settle
from steelyard.studies.request import requested_options
from steelyard.study import study

SHARED = ("seed", "quick", "gate", "gate_retries", "tuning", "out", "limits")


@pytest.fixture
def section(pytestconfig: pytest.Config) -> str:
    page = (pytestconfig.rootpath / "docs/reference/study-file.md").read_text(encoding="utf-8")
    return re.split(r"\n## ", page.partition("## Keys of the colocation study")[2])[0]


def test_every_key_stands_in_the_reference(section: str) -> None:
    for name in ColocationOptions.model_fields:
        assert f"| `{name}` |" in section or (name in SHARED and f"`{name}`" in section.partition("|")[0])


def test_the_documented_defaults_are_the_real_ones(section: str) -> None:
    names = ("repetitions", "warm_up_ms", "baseline_ms", "best_effort_ms", "recovery_ms", "drain_limit_ms")
    settled = [
        settle(ColocationOptions(quick=quick, in_vm=in_vm))
        for in_vm in (False, True)
        for quick in (False, True)
    ]
    for name in names:
        line = next(line for line in section.splitlines() if line.startswith(f"| `{name}` |"))
        full, quick, guest, quick_guest = (getattr(each, name) for each in settled)
        said = [f"{full}" if full == guest else f"{full}, in a guest {guest}"]
        said.append(f"{quick}" if quick == quick_guest else f"{quick}, in a guest {quick_guest}")
        assert f"| {said[0]} | {said[1]} |" in line


@pytest.mark.parametrize("vcpus", [1, 2, 3, 4, 8])
def test_processors_of_a_guest_are_as_fast_as_they_can_be_unless_said(vcpus: int) -> None:
    assert settle(ColocationOptions(in_vm=True, vcpus=vcpus)).instruction_ns == vcpus
    assert settle(ColocationOptions(in_vm=True, vcpus=vcpus, instruction_ns=9)).instruction_ns == 9
    assert settle(ColocationOptions(vcpus=vcpus)).instruction_ns is None


def test_a_guest_in_real_time_is_asked_for_as_a_machine_is() -> None:
    real = settle(ColocationOptions(in_vm=True, vm_time="real"))
    host = settle(ColocationOptions())
    assert (real.loads, real.arrivals, real.instruction_ns) == (host.loads, host.arrivals, None)
    assert settle(real) == real
    assert settle(ColocationOptions(in_vm=True)).vm_time == "instructions"


@pytest.mark.parametrize(
    "given",
    [
        {"repetitions": 0},
        {"loads": (0,)},
        {"policies": ("be", "luck")},
        {"policies": ("scx:",)},
        {"policies": ("scx:'a",)},
        {"client": "  "},
        {"client": "ask 'me"},
    ],
)
def test_what_is_out_of_range_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=f"--{next(iter(given))}"):
        requested_options(study("colocation"), None, given)


@pytest.mark.parametrize(
    "asked",
    [
        ColocationOptions(in_vm=True, cpus=(0,)),
        ColocationOptions(loads=(85, 85)),
        ColocationOptions(in_vm=True, arrivals="uniform"),
        ColocationOptions(closed_loop=4, kind="web"),
        ColocationOptions(client="hackbench", loads=(50,)),
        ColocationOptions(client="hackbench", kind="web"),
        ColocationOptions(client="hackbench", closed_loop=2),
        ColocationOptions(instruction_ns=8),
        ColocationOptions(vm_time="instructions"),
        ColocationOptions(in_vm=True, vm_time="real", instruction_ns=2),
        ColocationOptions(in_vm=True, vcpus=4, instruction_ns=2),
    ],
)
def test_what_contradicts_itself_is_refused(asked: ColocationOptions) -> None:
    with pytest.raises(UsageError):
        settle(asked)


def test_every_tolerance_that_a_study_takes_can_be_analysed() -> None:
    (bounds,) = (
        [each for each in field.metadata if hasattr(each, "le")]
        for name, field in ColocationOptions.model_fields.items()
        if name == "tolerance_percent"
    )
    assert AnalysisOptions(tolerance_percent=bounds[0].le).tolerance_percent == bounds[0].le
