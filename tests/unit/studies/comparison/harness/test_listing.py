"""Benchmarks that a harness lists in several revisions: which are compared, what is said of the others."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from steelyard.errors import RunError, UsageError
from steelyard.studies.comparison.contender import Side
from steelyard.studies.comparison.harness.driver import Scratch
from steelyard.studies.comparison.suite import harnesses_of, read_suite, with_harnesses
from steelyard.studies.comparison.terms import Metric, Terms, draw_plan, planned_terms

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.model import Plan
    from steelyard.studies.comparison.contender import Commands

SUITE = """
margin_percent = 4

[benchmark.sort]
command = "./sort"

[harness.core]
kind = "google-benchmark"
command = "./bench --flag 'a b'"
margin_percent = 3

[harness.other]
kind = "google-benchmark"
command = "./bench"
select = ["pars*", "b/[1]"]
seconds = 0.05
"""
NAMES = {
    "old": ["parse/10", "gone", "b/[1]"],
    "mid": ["parse/10", "new"],
    "new": ["new", "parse/10", "b/[1]"],
}


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Side, ...]:
    found = []
    for name, benchmarks in NAMES.items():
        folder = tmp_path / name
        folder.mkdir()
        # Answers as a program of Google Benchmark that is asked for its names.
        program = folder / "bench"
        program.write_text("#!/bin/sh\ncat <<'END'\n" + "\n".join(benchmarks) + "\nEND\n")
        program.chmod(0o755)
        found.append(Side(name, folder))
    return tuple(found)


def listed(tmp_path: Path, sides: tuple[Side, ...], *wanted: str, text: str = SUITE) -> Commands:
    (tmp_path / "steelyard.toml").write_text(text, encoding="utf-8")
    (tmp_path / "scratch").mkdir(exist_ok=True)
    return with_harnesses(read_suite(tmp_path / "steelyard.toml"), wanted, sides, tmp_path / "scratch").on(
        sides, (), tmp_path
    )


def test_what_two_revisions_share_is_compared_and_the_rest_is_said(
    tmp_path: Path, sides: tuple[Side, ...]
) -> None:
    commands = listed(tmp_path, sides)
    field = commands.field()
    pairs = [tuple(field.contenders[number].name for number in pair) for pair in field.pairs]
    assert pairs == [
        ("sort @ old", "sort @ mid"),
        ("sort @ old", "sort @ new"),
        ("core/parse/10 @ old", "core/parse/10 @ mid"),
        ("core/parse/10 @ old", "core/parse/10 @ new"),
        ("core/b/[1] @ old", "core/b/[1] @ new"),
        ("other/parse/10 @ old", "other/parse/10 @ mid"),
        ("other/parse/10 @ old", "other/parse/10 @ new"),
        ("other/b/[1] @ old", "other/b/[1] @ new"),
    ]
    assert field.margins == (0.04, 0.04, 0.03, 0.03, 0.03, 0.04, 0.04, 0.04)
    said = "\n".join(commands.remarks)
    assert "not compared, as old lacks `core/new`" in said
    assert "not compared, as mid lacks `core/gone`, `core/b/[1]`, `other/b/[1]`" in said
    assert "not compared, as new lacks `core/gone`" in said
    assert "commands report no time of their own" in said


def test_a_benchmark_runs_alone_with_the_words_of_its_command(
    tmp_path: Path, sides: tuple[Side, ...]
) -> None:
    contenders = listed(tmp_path, sides, "core/parse*", "other/b/[1]").field().contenders
    first, last = contenders[0], contenders[-1]
    assert first.words[:4] == ("./bench", "--flag", "a b", "--benchmark_filter=^parse/10$")
    assert first.folder == sides[0].folder
    # The recorded command is the same in each session, what is run has the folder of this one.
    assert first.words[-2] == "--benchmark_out=%SCRATCH%/run/benchmark.json"
    assert first.reading is not None
    filled = first.reading.filled(first.words)
    assert filled[-2] == f"--benchmark_out={tmp_path}/scratch/0/run/benchmark.json"
    assert last.words[1:3] == (r"--benchmark_filter=^b/\[1\]$", "--benchmark_min_time=0.05")
    assert last.reading is not None
    assert first.reading.scratch != last.reading.scratch


@pytest.mark.parametrize(
    ("pattern", "count"),
    [
        ("core", 2),
        ("core/*", 2),
        ("core/b/[1]", 1),
        ("*parse*", 2),
        ("*", 5),
        ("sort", 1),
        ("[co]*/parse/10", 2),
    ],
)
def test_patterns_choose_among_commands_and_harnesses(
    tmp_path: Path, sides: tuple[Side, ...], pattern: str, count: int
) -> None:
    assert len(listed(tmp_path, sides, pattern).texts) == count


def test_a_harness_that_no_pattern_can_name_is_not_asked(tmp_path: Path) -> None:
    (tmp_path / "steelyard.toml").write_text(SUITE, encoding="utf-8")
    suite = read_suite(tmp_path / "steelyard.toml")

    def asked(*wanted: str) -> list[str]:
        return [harness.name for harness in harnesses_of(suite, wanted)]

    assert asked("sort") == asked("s*") == asked("cor") == []
    assert asked("core/x") == asked("core") == asked("c*") == asked("core*") == ["core"]
    assert asked() == asked("?o*", "other/a") == ["core", "other"]


def test_a_name_that_is_none_lists_those_there_are(tmp_path: Path, sides: tuple[Side, ...]) -> None:
    with pytest.raises(UsageError, match="no benchmark `core/prase`; it has `sort`, `core/parse/10`"):
        listed(tmp_path, sides, "core/prase")


def test_benchmarks_that_no_two_revisions_share_are_refused(tmp_path: Path, sides: tuple[Side, ...]) -> None:
    with pytest.raises(UsageError, match="no benchmark is both in old and in another revision"):
        listed(tmp_path, sides, "core/new")


ALONE = SUITE[: SUITE.index("[benchmark")] + SUITE[SUITE.index("[harness.other]") :]


def test_a_suite_without_a_benchmark_is_named(tmp_path: Path, sides: tuple[Side, ...]) -> None:
    text = ALONE.replace('select = ["pars*", "b/[1]"]', 'select = ["prase*"]')
    with pytest.raises(RunError, match=r"`./bench` has no benchmark that `prase\*` names"):
        listed(tmp_path, sides, text=text)


def test_a_side_that_cannot_be_listed_is_named(tmp_path: Path, sides: tuple[Side, ...]) -> None:
    (sides[1].folder / "bench").write_text("#!/bin/sh\necho no library >&2\nexit 3\n")
    with pytest.raises(RunError, match=r"benchmarks of `other` in mid: .* exit code 3: no library"):
        listed(tmp_path, sides, text=ALONE)


def test_a_harness_that_cannot_be_listed_leaves_the_others(tmp_path: Path, sides: tuple[Side, ...]) -> None:
    text = SUITE.replace('command = "./bench"', 'command = "./no-such"')
    commands = listed(tmp_path, sides, text=text)
    assert commands.names == ("sort", "core/parse/10", "core/b/[1]")
    assert commands.remarks[0].startswith("failed: cannot list the benchmarks of `other` in old: cannot run")


def test_a_module_is_compiled_once_also_where_the_environment_keeps_no_compiled_ones(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "scratch")
    scratch.clear()
    (tmp_path / "module.py").write_text("", encoding="utf-8")
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"} | scratch.python_environment
    subprocess.run([sys.executable, "-c", "import module"], cwd=tmp_path, env=environment, check=True)
    assert list(scratch.kept.rglob("module.*.pyc"))
    assert not (tmp_path / "__pycache__").exists()


def test_the_statistic_of_a_process_is_part_of_the_plan(tmp_path: Path, sides: tuple[Side, ...]) -> None:
    def drawn(text: str) -> Plan:
        entrants = listed(tmp_path, sides, text=text).field()
        return draw_plan(entrants, Terms(metric=Metric.REPORTED).of(entrants))

    least = SUITE.replace("google-benchmark", "divan").replace("margin_percent = 3", 'statistic = "min"')
    # What lists for Google Benchmark does not list for divan.
    patched = {"divan": "google_benchmark:DRIVER"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("steelyard.studies.comparison.harness.listing._DRIVERS", patched)
        usual, other = drawn(least.replace('statistic = "min"', "")), drawn(least)
    assert "within" not in usual.options
    assert usual.id != other.id
    terms, _ = planned_terms(other)
    assert terms.within == {"core/parse/10": "min", "core/b/[1]": "min"}


@pytest.mark.parametrize("other", ['[harness."core/parse"]', '[benchmark."core/parse/10"]'])
def test_equal_names_of_two_tables_are_refused(tmp_path: Path, sides: tuple[Side, ...], other: str) -> None:
    """`core/parse/10` is the benchmark `parse/10` of `core`, and `10` of `core/parse`."""
    for side in sides:
        (side.folder / "other").write_text("#!/bin/sh\necho 10\n")
        (side.folder / "other").chmod(0o755)
    kind = 'kind = "google-benchmark"\n' if "harness" in other else ""
    text = f'{SUITE}\n{other}\n{kind}command = "./other"\n'
    with pytest.raises(UsageError, match="the suite has two benchmarks `core/parse/10`"):
        listed(tmp_path, sides, text=text)


def test_equal_names_in_a_harness_are_refused_unless_they_are_left_out(
    tmp_path: Path, sides: tuple[Side, ...]
) -> None:
    """A filter of Google Benchmark would run both, and their mean would be compared."""
    names = "parse/10\nb/[1]\nsame\nsame\n"
    (sides[2].folder / "bench").write_text(f"#!/bin/sh\ncat <<'END'\n{names}END\n")
    commands = listed(tmp_path, sides)
    assert commands.remarks[0] == "failed: new has several benchmarks `same` in `core`"
    assert commands.names == ("sort", "other/parse/10", "other/b/[1]")


CALIBRATING = """#!/bin/sh
# Answers as a script of pyperf whose calibration gives another number each time.
echo x >> calibrations
for file; do :; done
name='"name": "sort", "loops": '$(wc -l < calibrations)
echo '{"metadata": {'$name'}, "benchmarks": [{"runs": []}]}' > "$file"
"""


def test_what_pyperf_calibrated_stays_when_a_suite_goes_on(tmp_path: Path, sides: tuple[Side, ...]) -> None:
    text = '[harness."core/x"]\nkind = "pyperf"\ncommand = "./bench"\n'
    for side in sides:
        (side.folder / "bench").write_text(CALIBRATING)
    (tmp_path / "steelyard.toml").write_text(text, encoding="utf-8")
    suite = read_suite(tmp_path / "steelyard.toml")

    def words(begun: dict[str, tuple[str, ...]]) -> list[tuple[str, ...]]:
        (tmp_path / "scratch").mkdir(exist_ok=True)
        commands = with_harnesses(suite, (), sides, tmp_path / "scratch", begun=begun)
        return [cell.words for cell in commands.on(sides, (), tmp_path).field().contenders]

    # The second and the third revision take the number of the first.
    first = words({})
    assert [each[-3] for each in first] == ["--loops=2"] * 3
    assert words({"core/x/sort": first[0]}) == first
    assert [each[-3] for each in words({"core/sort": first[0]})] != [each[-3] for each in first]
