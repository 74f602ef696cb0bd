"""What is started, by a loader that stands in for the real one where the kernel has no sched_ext."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from steelyard.errors import CapabilityError, UsageError
from steelyard.run.best_effort import service
from steelyard.run.best_effort.service import BestEffortStatus, read_status, start_protection, stop_protection

if TYPE_CHECKING:
    from collections.abc import Callable

    Loader = Callable[..., Path]

GOVERNOR = {
    "watches": "pressure: /x/cpu.pressure",
    "allowance": "limited",
    "quota_cpus": 0.5,
    "pressure": 0.125,
    "pressure_alone": 0.03,
    "problem": "a service's group is gone",
    "counters": {"throttles": 2, "limited_ns": 1_500_000_000, "parks": 1, "parked_ns": 0, "releases": 1},
}


@pytest.fixture
def loader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Loader:
    """Give what makes a loader and a governor that note how they are called."""

    def make(probe: dict[str, Any], *, state: str, governor: str = "started", code: int = 0) -> Path:
        calls = tmp_path / "calls"
        calls.touch()
        loader = tmp_path / "steelyard-scheduler"
        is_there = state in {"active", "ejected"}
        status = json.dumps(
            {"active": state == "active", "ejections": 1, "last_exit": "stalled", "counters": {"be_picks": 7}}
            | ({"pid": 7} if is_there else {})
        )
        loader.write_text(
            f'#!/bin/sh\necho "loader $*" >> {calls}\n'
            f"case $1 in probe) echo '{json.dumps(probe)}';; status) echo '{status}';; esac\n"
        )
        governing = tmp_path / "steelyard-govern"
        seen = "inactive" if state == "ejected" else state
        answer = json.dumps({"class": {"state": seen, "name": "steelyard_be"}, "governor": None})
        governing.write_text(
            f'#!/bin/sh\necho "governor $*" >> {calls}\n'
            f"case $1 in status) echo '{answer}';; stop) echo 'not started';; start) echo '{governor}'\n"
            f'[ {code} = 0 ] || printf "error: no such group\\n\\nhint: other words\\n" >&2\n'
            f"exit {code};; esac\n"
        )
        for program in (loader, governing):
            program.chmod(0o755)
        monkeypatch.setattr(service, "scheduler_program", lambda: loader)
        monkeypatch.setattr(service, "govern_program", lambda: governing)
        return calls

    return make


def test_the_class_is_started_where_its_loader_says_it_can_be(loader: Loader) -> None:
    calls = loader({"available": True}, state="inactive")
    started = start_protection(())
    assert (started.is_class, started.is_new, started.missing) == (True, True, ())
    assert calls.read_text().splitlines()[-2:] == ["governor stop", f"loader start --starter {os.getpid()}"]


def test_what_is_best_effort_is_told_to_the_class_and_to_the_governor(loader: Loader, tmp_path: Path) -> None:
    calls = loader({"available": True}, state="inactive")
    start_protection((), best_effort=tmp_path)
    assert f"loader start --best-effort-below {tmp_path} --starter" in calls.read_text()
    start_protection((), best_effort=tmp_path, wants_governor=True)
    assert calls.read_text().splitlines()[-1] == f"governor start --group {tmp_path}"


def test_status_says_how_well_siblings_are_kept_free() -> None:
    scheduler = {"pid": 7, "siblings": "forbid", "strictness": {"longest_beside_ns": 390_000}}
    lines = BestEffortStatus(scheduler, {}, "active", "steelyard_be").lines()
    assert lines[2] == "siblings: forbid; a job ran beside a service on one core for 0.39 ms at most"
    lines = BestEffortStatus({"pid": 7, "siblings": "allow"}, {}, "active", "steelyard_be").lines()
    assert not any("siblings" in line for line in lines)


def test_siblings_are_kept_free_by_the_class_or_not_at_all(loader: Loader) -> None:
    calls = loader({"available": True}, state="inactive")
    start_protection((), siblings="forbid")
    assert "loader start --siblings forbid --starter" in calls.read_text()
    loader({"available": True}, state="active")
    with pytest.raises(UsageError, match="is started already, with `--siblings allow`"):
        start_protection((), siblings="avoid")
    calls = loader({"available": False, "reasons": ["no BTF"]}, state="unsupported")
    with pytest.raises(CapabilityError, match="`--siblings avoid` needs the class: no BTF"):
        start_protection((), siblings="avoid")
    assert "governor start" not in calls.read_text()


@pytest.mark.parametrize(
    ("name", "verb"), [("scheduler", "probe"), ("scheduler", "start"), ("govern", "start")]
)
def test_a_program_that_hangs_is_ended_and_named(
    loader: Loader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, verb: str
) -> None:
    loader({"available": name == "scheduler"}, state="inactive")
    program = tmp_path / f"steelyard-{name}"
    told = program.read_text()
    program.write_text(f"#!/bin/sh\n[ $1 = {verb} ] && echo $$ > {tmp_path}/id && exec sleep 600\n{told}")
    monkeypatch.setattr(service, "START_LIMIT_S", 2.5)
    begin = time.monotonic()
    with pytest.raises(CapabilityError, match=f"steelyard-{name} {verb}") as caught:
        start_protection(())
    assert time.monotonic() - begin < 10
    assert "did not end in time, and was ended" in caught.value.message
    assert not Path("/proc", (tmp_path / "id").read_text().strip()).exists()


def test_a_loader_that_cannot_be_run_is_an_error_that_names_it(loader: Loader, tmp_path: Path) -> None:
    loader({"available": True}, state="inactive")
    (tmp_path / "steelyard-scheduler").chmod(0o644)
    with pytest.raises(CapabilityError, match=r"cannot run `.*steelyard-scheduler`: Permission denied"):
        start_protection(())


def test_a_class_that_is_active_is_left_alone(loader: Loader) -> None:
    calls = loader({"available": True}, state="active")
    started = start_protection(())
    assert (started.is_class, started.is_new) == (True, False)
    assert "loader start" not in calls.read_text()
    assert read_status().level == "strict"
    assert stop_protection() == ("class",)
    assert "loader stop" in calls.read_text()


def test_a_class_that_the_kernel_has_ended_is_no_protection_and_its_loader_is_ended_too(
    loader: Loader,
) -> None:
    calls = loader({"available": True}, state="ejected")
    found = read_status()
    assert found.level == "none"
    assert found.lines()[1] == "class: the kernel has ended it, and its loader tries again: stalled"
    assert not start_protection(()).is_new
    assert stop_protection() == ("class",)
    assert "loader stop" in calls.read_text()


def test_the_governor_takes_the_place_with_the_loaders_reasons(loader: Loader, tmp_path: Path) -> None:
    calls = loader({"available": False, "reasons": ["no BTF", "not root"]}, state="unsupported")
    started = start_protection((tmp_path,))
    assert (started.is_class, started.is_new, started.missing) == (False, True, ("no BTF", "not root"))
    assert f"governor start --service {tmp_path}" in calls.read_text()
    assert "loader start" not in calls.read_text()


def test_a_governor_beside_the_class_is_refused(loader: Loader) -> None:
    loader({"available": True}, state="active")
    with pytest.raises(CapabilityError, match="twice"):
        start_protection((), wants_governor=True)


def test_a_wrong_request_is_no_missing_capability(loader: Loader) -> None:
    loader({"available": False}, state="inactive", code=2)
    with pytest.raises(UsageError, match="no such group"):
        start_protection(())
    loader({"available": False}, state="inactive", code=3)
    with pytest.raises(CapabilityError) as caught:
        start_protection(())
    assert caught.value.hint == "other words"


def test_without_a_loader_it_is_said_how_to_build_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "scheduler_program", lambda: None)
    assert "make scheduler" in service._missing(time.monotonic())[-1]


def test_the_lines_say_what_holds() -> None:
    lines = BestEffortStatus({}, GOVERNOR).lines()
    assert lines[0].startswith("level: idle")
    assert lines[1:] == [
        "governor: watches pressure: /x/cpu.pressure",
        "best-effort commands: limited to 0.50 CPUs; waiting: 12.5%, without them 3.0%",
        "throttled 2 times for 1.5 s, parked 1 times for 0.0 s, released 1 times",
        "problem: a service's group is gone",
    ]
    foreign = BestEffortStatus(state="foreign", name="rusty").lines()
    assert foreign[1] == "sched_ext: another scheduler is loaded, `rusty`"
