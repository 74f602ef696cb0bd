"""Whether the time of a guest is real is decided once, by what the host can do; the plan keeps it."""

from __future__ import annotations

import os

import pytest

from steelyard.errors import CapabilityError, UsageError
from steelyard.studies.colocation.guest import placement
from steelyard.studies.colocation.guest.placement import guest_host, with_vm_time
from steelyard.studies.colocation.guest.sched_ext import find_emulator, find_sched_ext_kernel
from steelyard.studies.colocation.options import ColocationOptions, settle


def _host(monkeypatch: pytest.MonkeyPatch, accelerator: str) -> None:
    monkeypatch.setattr(placement, "choose_accelerator", lambda: (accelerator, "as the test says"))


@pytest.mark.parametrize(
    ("accelerator", "asked", "expected"),
    [
        ("kvm", ColocationOptions(in_vm=True), "real"),
        ("kvm", ColocationOptions(in_vm=True, vm_time="instructions"), "instructions"),
        ("kvm", ColocationOptions(in_vm=True, instruction_ns=8), "instructions"),
        ("kvm", ColocationOptions(), None),
        ("tcg", ColocationOptions(in_vm=True), "instructions"),
    ],
)
def test_time_is_real_where_it_can_be(
    accelerator: str, asked: ColocationOptions, expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    _host(monkeypatch, accelerator)
    assert settle(with_vm_time(asked)).vm_time == expected


def test_a_host_whose_virtualisation_cannot_be_tried_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> tuple[str, str]:
        message = "there is no guest kernel"
        raise CapabilityError(message)

    monkeypatch.setattr(placement, "choose_accelerator", fail)
    assert settle(with_vm_time(ColocationOptions(in_vm=True))).vm_time == "instructions"


def test_real_time_needs_virtualisation_and_as_many_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        find_sched_ext_kernel(), find_emulator()
    except CapabilityError as absent:
        pytest.skip(absent.message)
    asked = settle(ColocationOptions(in_vm=True, vm_time="real", vcpus=8))
    _host(monkeypatch, "tcg")
    with pytest.raises(CapabilityError, match="cannot run a guest in real time: as the test says"):
        guest_host(asked)
    _host(monkeypatch, "kvm")
    if len(os.sched_getaffinity(0)) < 10:
        with pytest.raises(UsageError, match="10 CPUs in real time"):
            guest_host(asked)
