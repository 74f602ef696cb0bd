"""What a report says of hosts that measured a part each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from steelyard.report.page import Table
from steelyard.run.machine.bystanders import ITSELF
from steelyard.studies.placed.host_findings import bystander_findings, clock_findings
from steelyard.studies.placed.host_report import BYSTANDERS, CLOCKS
from steelyard.studies.stability.report.sentences import PHRASING

if TYPE_CHECKING:
    from pydantic import JsonValue


def described(*parts: dict[str, tuple[float, int]], starts: int, seconds: float = 10.0) -> JsonValue:
    looks: list[Any] = [
        {
            "seconds": seconds,
            "of": {name: {"cpu_ms": ms, "turns": turns} for name, (ms, turns) in each.items()},
        }
        for each in parts
    ]
    return {"starts": starts, "bystanders": looks}


def test_what_others_did_on_a_host_is_said_by_name() -> None:
    hosts: dict[str, JsonValue] = {
        "1": described(
            {"slurmd": (4.0, 30), ITSELF: (900.0, 50), "kworker": (6.0, 100)},
            {"slurmd": (2.0, 10), "cron": (1.0, 4)},
            starts=3,
        ),
        "2": described({"backup": (400.0, 900)}, starts=1),
        "3": {"starts": 2, "bystanders": []},
        "4": {"host": {}},
    }
    quiet, busy = bystander_findings(hosts, {number: f"n{number}" for number in "12345"})
    assert PHRASING.say(quiet).text == (
        "On n1 other processes took 0.065 % of one CPU, in 7.2 turns a second, while 2 of 3 parts were "
        "running (slurmd 0.03 %, kworker 0.03 %, cron 0.005 %); daemons that place "
        "parts took 0.03 % (slurmd), Steelyard's process, which waits while a run is measured, 4.5 %."
    )
    assert PHRASING.say(busy).text.endswith("This is more than 1 %: times there may be longer by it.")
    table = BYSTANDERS.build([busy, quiet])
    assert isinstance(table, Table)
    assert [[value.text for value in row[:6]] for row in table.rows] == [
        ["n2", "busy", "4 %", "0 %", "0 %", "90.0"],
        ["n1", "quiet", "0.065 %", "0.03 %", "4.5 %", "7.20"],
    ]


def test_how_far_start_times_can_be_compared_is_said() -> None:
    def clock(
        low_s: float, high_s: float, drift: float | None = None, *, is_steady: bool = True
    ) -> JsonValue:
        limits: dict[str, JsonValue] = {"low_s": low_s, "high_s": high_s, "is_steady": is_steady}
        return {"clock": {**limits, "readings": 4, "drift_low_ppm": drift, "drift_high_ppm": drift}}

    hosts: dict[str, JsonValue] = {
        "1": clock(-0.002, 0.001),
        "2": clock(0.4, 3.5, 100.0, is_steady=False),
        "3": {"clock": None},
    }
    apart, first, second = clock_findings(hosts, {number: f"n{number}" for number in "123"})
    assert PHRASING.say(apart).text == (
        "Start times on 2 of 3 hosts can be compared to within 3.502 s: clocks were at most so far from each "
        "other, and no time was shifted by it. No finding compares start times of different hosts; the "
        "clocks of the others were not compared."
    )
    ahead = "ahead of that of the host that placed the parts"
    assert PHRASING.say(first).text == f"The clock of n1 was -2.000 ms to 1.000 ms {ahead}."
    assert PHRASING.say(second).text == (
        f"The clock of n2 moved meanwhile: it was 400.0 ms to 3.500 s {ahead}, and went 100 to 100 ppm "
        "faster."
    )
    table = CLOCKS.build([first, second])
    assert isinstance(table, Table)
    assert [row[4].text for row in table.rows] == ["NA", "100 ppm"]
    assert [each.claim for each in clock_findings({"1": clock(0, 1)}, {"1": "n1"})] == ["clock"]
