"""Every test is in one lane, and no lane counts what it did not run."""

from __future__ import annotations

import importlib.util
import re
import sys
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from _pytest.mark.expression import Expression

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

ROOT = Path(__file__).parents[2]
MARKERS = ("slow", "timing", "needs_wheel", "needs_vm", "needs_sched_ext_guest", "needs_aarch64")


@pytest.fixture
def lanes(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("lanes", ROOT / "scripts" / "lanes.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


class Listening:
    """A runner that runs nothing and remembers the expressions it was given."""

    def __init__(self) -> None:
        self.expressions: list[str] = []

    def pytest(self, markers: str, *_options: object) -> None:
        self.expressions.append(markers)

    def __getattr__(self, _name: str) -> Callable[..., None]:
        return lambda *_words, **_options: None


def expressions(lanes: dict[str, Callable[[Listening], object]]) -> list[Expression]:
    listening = Listening()
    for lane in lanes.values():
        lane(listening)
    return [Expression.compile(each) for each in listening.expressions]


def test_each_test_is_in_one_lane_whatever_its_markers_are(lanes: ModuleType) -> None:
    fast, long = expressions(lanes.FAST), expressions(lanes.LONG)
    assert len(fast) + len(long) > 4
    for chosen in product([False, True], repeat=len(MARKERS)):
        marked = {name for name, is_chosen in zip(MARKERS, chosen, strict=True) if is_chosen}
        takers = [group for group in (fast, long) for each in group if each.evaluate(marked.__contains__)]
        assert takers == [long if "slow" in marked else fast], marked


def test_each_marker_of_the_project_is_one_the_lanes_know_or_a_need() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    names = re.findall(r'^    "(\w+)(?:\(\w+\))?: ', text.partition("markers = [")[2], re.MULTILINE)
    assert {name for name in names if not name.startswith("needs_")} == {"slow", "long", "timing"}
    promised = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    unpromised = {name for name in names if name.startswith("needs_") and name not in promised}
    assert unpromised == {
        "needs_cgroup2",
        "needs_go",
        "needs_isolate",
        "needs_old_userland",
    }


@pytest.mark.parametrize(
    ("line", "counts"),
    [
        ("test result: ok. 52 passed; 0 failed; 3 ignored; 0 measured; 1 filtered out", (52, 0, 3)),
        ("test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured", (1, 2, 0)),
        ("3211 passed, 4 skipped, 1 error in 517.95s (0:08:37)\n", (3211, 1, 4)),
        ("1 failed, 2 passed, 7 deselected in 0.10s", (2, 1, 0)),
        ("no tests ran in 0.01s", (0, 0, 0)),
        ("12 passed the exam in the year 7", (0, 0, 0)),
    ],
)
def test_closing_lines_are_counted(line: str, counts: tuple[int, int, int], lanes: ModuleType) -> None:
    found = lanes.counted(line)
    assert tuple(found[name] for name in ("passed", "failed", "skipped")) == counts


def test_what_fails_without_a_closing_line_is_a_failure(
    lanes: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(lanes, "LATEST", tmp_path / "lanes.json")
    monkeypatch.setattr(lanes, "LANES", {"broken": lambda runner: runner.run(["false"])})
    runner = lanes.Runner(records=False, promised="")
    runner.run_lane("broken")
    assert runner.close() == 1
    said = capsys.readouterr().out
    assert "error: failed: broken: `false` (exit code 1)" in said
    assert said.endswith("0 passed, 1 failed, 0 skipped\n")


def test_a_lane_that_would_end_too_late_is_named(
    lanes: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    ran: list[str] = []
    long = {name: lambda _runner, name=name: ran.append(name) for name in ("brief", "endless")}
    monkeypatch.setattr(lanes, "LATEST", tmp_path / "lanes.json")
    monkeypatch.setattr(lanes, "LANES", long)
    monkeypatch.setattr(lanes, "LONG", long)
    monkeypatch.setattr(lanes, "durations", lambda: {"lanes": {"fast": 10, "brief": 600, "endless": 1300}})
    lanes.LATEST.write_text('{"fast": 20}', encoding="utf-8")
    lanes.run_in_time(lanes.Runner(records=False, promised=""), elapsed_s=40 * 60)
    assert ran == ["brief"]
    said = capsys.readouterr().out
    assert "this machine takes 2.00 times the recorded durations" in said
    assert "left out: endless: expected to end 83 minutes after the start" in said
