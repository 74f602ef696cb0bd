"""Suites: what their file may say, and which benchmarks it describes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from steelyard.errors import StudyFileError, UsageError
from steelyard.studies.comparison.contender import Side
from steelyard.studies.comparison.suite import benchmarks_of, commands_of, read_suite

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.studies.comparison.suite import SuiteOptions

SUITE = """
revisions = ["main", "HEAD"]
margin_percent = 3

[benchmark.sort]
command = "./sort words.txt"

[benchmark.parse]
command = "./parse {size} {style}"
parameters = { size = [10, 1000], style = ["a", "b"] }
margin_percent = 5
prepare = "make {size}.txt"

[benchmark."two words"]
command = "cat a | ./count '{x}'"
shell = true
"""


@pytest.fixture
def suite(tmp_path: Path) -> SuiteOptions:
    return read(tmp_path, SUITE)


def read(folder: Path, text: str) -> SuiteOptions:
    (folder / "steelyard.toml").write_text(text, encoding="utf-8")
    return read_suite(folder / "steelyard.toml")


def test_a_family_is_one_benchmark_for_each_combination(suite: SuiteOptions) -> None:
    found = benchmarks_of(suite)
    assert [each.name for each in found] == [
        "sort",
        "parse (size=10, style=a)",
        "parse (size=10, style=b)",
        "parse (size=1000, style=a)",
        "parse (size=1000, style=b)",
        "two words",
    ]
    assert found[3].text == "./parse 1000 a"
    assert found[3].hooks.prepare == "make 1000.txt"
    assert [each.margin for each in found[:2]] == [0.03, 0.05]


def test_a_name_is_one_line(tmp_path: Path) -> None:
    text = '[benchmark."two\\nlines"]\ncommand = "x {v}"\nparameters = { v = ["a\\tb"] }\n'
    (found,) = benchmarks_of(read(tmp_path, text))
    assert found.name == "two lines (v=a b)"
    assert found.text == "x a\tb"


def test_each_benchmark_is_compared_with_itself(suite: SuiteOptions, tmp_path: Path) -> None:
    sides = tuple(Side(name, tmp_path) for name in ("old", "new", "newer"))
    field = commands_of(benchmarks_of(suite), sides).field()
    assert len(field.contenders) == 18
    assert len(field.pairs) == 12
    assert all(
        field.contenders[one].benchmark == field.contenders[other].benchmark for one, other in field.pairs
    )
    assert [sorted(contest) for contest in field.contests[:2]] == [[0, 1, 2], [3, 4, 5]]
    words = field.contenders[-1].words
    assert words == ("sh", "-c", "cat a | ./count '{x}'")


@pytest.mark.parametrize(
    ("wanted", "count"), [(["sort"], 1), (["p*"], 4), (["parse"], 4), (["parse (size=10,*"], 2), (["*"], 6)]
)
def test_names_and_patterns_choose(suite: SuiteOptions, wanted: list[str], count: int) -> None:
    assert len(benchmarks_of(suite, wanted)) == count


def test_a_name_that_is_none_is_named(suite: SuiteOptions) -> None:
    with pytest.raises(UsageError, match="no benchmark `sotr`; it has `sort`, `parse`, `two words`"):
        benchmarks_of(suite, ["sort", "sotr"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no benchmark"),
        ("[benchmark]", "has no benchmark"),
        ("[harness.a]\nkind = 'gtest'\ncommand = 'x'", "line 2: `harness.a.kind` is .*allowed: .*`go`"),
        ("[harness.a]\nkind = 'go'\ncommand = 'x'\nseconds = 0", "line 4: `harness.a.seconds` is `0`"),
        (
            "[harness.a]\nkind = 'go'\ncommand = 'x'\nstatistic = 'min'",
            'line 4: `harness.a.statistic` is `"min"`; allowed for `go`: `mean`',
        ),
        (
            "[harness.a]\nkind = 'pyperf'\ncommand = 'x'\nstatistic = 'slope'",
            '`"slope"`; allowed for `pyperf`: `mean`, `median`, `min`',
        ),
        (
            "[harness.a]\nkind = 'go'\ncommand = 'x'\nstatistic = 'p99'",
            "allowed: `mean`, `median`, `min`, `slope`",
        ),
        (
            "[benchmark.a]\ncomand = 'x'",
            r"`comand` ?is not a known key|`benchmark.a.comand` is not a known key",
        ),
        ("[benchmark.a]\ncomand = 'x'", "did you mean `command`"),
        ("[benchmark.a]\ncommand = ''", "`benchmark.a.command` is"),
        ("[benchmark.a]\ncommand = 'x'\nmargin_percent = 0", "line 3: `benchmark.a.margin_percent` is `0`"),
        ("minutes = -1\n[benchmark.a]\ncommand = 'x'", "allowed: above 0"),
        ("[benchmark.a]\ncommand = 'x'\nparameters = { n = [] }", "at least 1 entry"),
        ("[benchmark.a\n", "line 1, column 13: not TOML"),
    ],
)
def test_what_is_wrong_in_a_suite_is_named_with_its_line(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(StudyFileError, match=words) as caught:
        read(tmp_path, text)
    assert caught.value.message.startswith("suite `")


def test_a_suite_that_is_absent_is_named(tmp_path: Path) -> None:
    with pytest.raises(StudyFileError, match="cannot read suite"):
        read_suite(tmp_path / "steelyard.toml")
