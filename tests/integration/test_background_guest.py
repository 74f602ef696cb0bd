"""Best-effort commands and their governor on both versions of control groups, in a guest of their own."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from fixtures.guest_needs import class_in_guest, guest_tools
from steelyard.run.best_effort.prometheus import exposition
from steelyard.run.best_effort.service import BestEffortStatus
from steelyard.run.guest.execution import GuestJob, execute_in_guest
from steelyard.run.guest.initramfs import Entry
from steelyard.run.programs import govern_program
from steelyard.studies.colocation.guest.tasks import Guest, GuestTask, execute_tasks

SCRIPT = Path(__file__).parents[1] / "fixtures" / "governed_guest.sh"


@pytest.mark.slow
@pytest.mark.needs_vm
@pytest.mark.timeout(300)
@pytest.mark.parametrize("layout", ["v2", "v1"])
def test_the_governor_throttles_parks_and_restores(layout: str, patience_s: float) -> None:
    tools = guest_tools()
    said = io.StringIO()
    job = GuestJob(
        govern_program(),
        arguments=("background", "--", "/bin/sh", "/governed_guest.sh", layout),
        cgroup=layout,  # type: ignore[arg-type]
        timeout_s=patience_s,
        memory_mib=512,
        # A kernel parameter: Debian's kernels have it off.
        environment=("psi=1",),
        tools=tools,
        files=(Entry.file("governed_guest.sh", SCRIPT.read_bytes(), 0o755),),
    )
    code = execute_in_guest(job, said)
    lines = said.getvalue().splitlines()
    assert not [line for line in lines if line.startswith("broken: ")], said.getvalue()
    assert "complete" in lines, said.getvalue()
    assert code == 0
    checks = [line for line in SCRIPT.read_text().splitlines() if line.startswith("check ")]
    assert sum(line.startswith("held: ") for line in lines) == len(checks)


CLASS_SCRIPT = r"""
fact() { echo "$1=$2" >> "$OUT/facts"; }
ticks() { sed 's/.*) //' "/proc/$1/stat" | awk '{ print $12 + $13 }'; }
steelyard-govern background --require class -- echo begun > "$OUT/refused.txt" 2>&1; fact refused $?
steelyard-scheduler start --within-s 60 > "$OUT/start.txt" 2>&1; fact start $?
steelyard-govern background --status "$OUT/status.json" --require class -- sh -c 'exit 5' 2> "$OUT/said.txt"
fact code $?
steelyard-govern status --json > "$OUT/govern.json"
steelyard-scheduler status --json > "$OUT/scheduler.json"
steelyard-govern background --quiet -- sh -c 'while :; do :; done' & B=$!
sleep 0.5
fact begin "$(ticks $B)"; sleep 1; fact alone "$(ticks $B)"
for each in 1 2 3; do sh -c 'while :; do :; done' & H="$H $!"; done
sleep 0.5
fact parked "$(ticks $B)"; sleep 3; fact still "$(ticks $B)"
kill $H; sleep 0.5
fact resumed "$(ticks $B)"; sleep 1; fact end "$(ticks $B)"
kill -9 $B
steelyard-scheduler stop > /dev/null; fact stop $?
"""


@pytest.mark.slow
@pytest.mark.needs_sched_ext_guest
@pytest.mark.timeout(400)
def test_under_the_class_a_command_runs_only_where_nothing_else_wants_to(
    tmp_path: Path, patience_s: float
) -> None:
    scheduler = class_in_guest()
    guest = Guest(
        {"steelyard-scheduler": scheduler, "steelyard-govern": govern_program()}, timeout_s=patience_s
    )
    execute_tasks([GuestTask("class", CLASS_SCRIPT, limit_s=120)], tmp_path, guest)
    left = tmp_path / "class"
    facts = dict(line.split("=", 1) for line in (left / "facts").read_text().splitlines())
    assert facts["refused"] == "3", "before the class is there"
    assert "begun" not in (left / "refused.txt").read_text()
    assert (facts["start"], facts["code"], facts["stop"]) == ("0", "5", "0")
    assert json.loads((left / "status.json").read_text())["level"] == "class"
    assert (left / "said.txt").read_text().startswith("steelyard: best-effort by the class `")
    status = BestEffortStatus(
        scheduler=json.loads((left / "scheduler.json").read_text()),
        state=json.loads((left / "govern.json").read_text())["class"]["state"],
    )
    assert status.level == "strict"
    assert "steelyard_best_effort_scheduler_events_total{event=" in exposition(status)
    ticks = {name: int(facts[name]) for name in ("begin", "alone", "parked", "still", "resumed", "end")}
    assert ticks["alone"] - ticks["begin"] >= 50, "ticks of 10 ms in a second alone"
    assert ticks["still"] - ticks["parked"] <= 2, "three that want two CPUs leave it none"
    assert ticks["end"] - ticks["resumed"] >= 50
