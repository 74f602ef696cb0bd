from __future__ import annotations

from dataclasses import replace

import pytest

from steelyard.model.run_outcome import CapturedStream, Quantity, RunOutcome, RunStatus
from steelyard.run.isolation.isolate_meta import merge_meta, parse_meta
from steelyard.run.isolation.own_lines import parse_own_line, take_own_lines

OUTCOME = RunOutcome(
    id="r",
    iteration=1,
    status=RunStatus.COMPLETED,
    exit_code=0,
    quantities={"wall_ns": Quantity(3_812_764, "perf_record", 1)},
)


def test_isolates_figures_replace_the_launchers_which_are_kept() -> None:
    merged = merge_meta(OUTCOME, parse_meta("time:0.050\ntime-wall:0.057\nmax-rss:1024\nexitcode:0\n"))
    assert merged.quantities["wall_ns"] == Quantity(57_000_000, "isolate", 1_000_000)
    assert merged.value("peak_resident_bytes") == 1024 * 1024
    assert merged.counters["launcher-wall_ns"].value == 3_812_764
    assert merged.status is RunStatus.COMPLETED


@pytest.mark.parametrize(
    ("meta", "status", "code", "signal"),
    [
        ("exitcode:3\nstatus:RE\nmessage:Exited with error status 3\n", "nonzero_exit", 3, None),
        ("exitsig:11\nstatus:SG\nmessage:Caught fatal signal 11\n", "signalled", None, 11),
        ("exitsig:9\nstatus:SG\ncg-oom-killed:1\n", "out_of_memory", None, 9),
        ("status:TO\nmessage:Time limit exceeded\nkilled:1\n", "cpu_timeout", None, None),
        ("status:TO\nmessage:Time limit exceeded (wall clock)\nkilled:1\n", "wall_timeout", None, None),
        ("status:XX\nmessage:Cannot mount\n", "launcher_failed", None, None),
    ],
)
def test_isolates_endings_are_ours(meta: str, status: str, code: int | None, signal: int | None) -> None:
    merged = merge_meta(OUTCOME, parse_meta(meta))
    assert (merged.status, merged.exit_code, merged.signal) == (status, code, signal)


def test_an_outcome_without_meta_file_failed() -> None:
    assert merge_meta(OUTCOME, {}).status is RunStatus.LAUNCHER_FAILED


def test_own_lines_leave_the_output() -> None:
    captured = CapturedStream("42\n#steelyard cpu 5 ns 1 measure\n#steelyard x\n", 0, truncated=False)
    taken = take_own_lines(replace(OUTCOME, standard_output=captured))
    assert taken.standard_output == replace(captured, text="42\n#steelyard x\n")
    assert [each.metric for each in taken.own] == ["cpu"]


@pytest.mark.parametrize(
    "words",
    [
        "cpu nan ns",
        "cpu inf ns",
        "cpu 5 ns 1 later",
        "cpu 5 ns 1 measure more",
        "cpu 5 ns -1",
        "c\x1bpu 5 ns",
        "cpu 5 " + "\0" * (1 << 20),
        "x" * 65 + " 5 ns",
    ],
)
def test_a_line_that_the_launcher_would_not_read_is_no_measurement(words: str) -> None:
    assert parse_own_line(f"#steelyard {words}") is None
