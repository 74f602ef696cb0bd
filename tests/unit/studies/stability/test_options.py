from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from steelyard.design.study_file import read_study_file
from steelyard.errors import StudyFileError, UsageError
from steelyard.studies.option_types import LimitOptions
from steelyard.studies.request import requested_options
from steelyard.studies.stability.options import StabilityOptions, settle
from steelyard.study import Study, studies, study

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import BaseModel


@pytest.fixture
def page(pytestconfig: pytest.Config) -> str:
    return (pytestconfig.rootpath / "docs/reference/study-file.md").read_text(encoding="utf-8")


def test_the_example_of_the_reference_is_a_good_study_file(page: str, tmp_path: Path) -> None:
    examples = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    (example,) = (each for each in examples if 'study = "stability"' in each)
    path = tmp_path / "study.toml"
    path.write_text(example, encoding="utf-8")
    options = _requested(path)
    assert (options.seed, options.workers, options.limits.memory_mib) == (2024, (1, 2, 4), 512)


@pytest.mark.parametrize("model", [StabilityOptions, LimitOptions])
def test_every_key_stands_in_the_reference(page: str, model: type[BaseModel]) -> None:
    for name in model.model_fields:
        assert f"| `{name}` |" in page


def test_the_documented_defaults_are_the_real_ones(page: str) -> None:
    quick, full = settle(StabilityOptions(quick=True)), settle(StabilityOptions())
    for name in ("blocks", "iterations", "target_iteration_ms", "tolerance_percent", "gate_retries"):
        assert f"| {getattr(full, name)} | {getattr(quick, name)} |" in next(
            line for line in page.splitlines() if line.startswith(f"| `{name}` |")
        )
    assert (full.emulated_iterations, quick.emulated_iterations) == (full.iterations, 3)
    assert "| as `iterations` | 3 |" in page
    assert f"| {full.limits.wall_time_s:.0f} |" in page


def _requested(path: Path | None, **given: object) -> StabilityOptions:
    options = requested_options(study("stability"), path, given)
    assert isinstance(options, StabilityOptions)
    return options


def test_an_option_that_was_not_given_leaves_the_value_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text('study = "stability"\nseed = 9\nquick = true\nout = "there"\n', encoding="utf-8")
    options = _requested(path, quick=None, seed=None, out=None)
    assert options == StabilityOptions(quick=True, seed=9, out="there")
    assert _requested(path, seed=3).seed == 3


def test_an_option_outside_its_range_is_wrong_usage(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text('study = "stability"\n', encoding="utf-8")
    for file in (None, path):
        with pytest.raises(UsageError, match=r"`--seed -1`: .*allowed: 0 or more"):
            _requested(file, seed=-1)


def test_what_a_study_file_says_goes_before_the_defaults_of_quick() -> None:
    settled = settle(StabilityOptions(quick=True, blocks=2, counters=("page-faults",)))
    assert (settled.blocks, settled.counters, settled.iterations) == (2, ("page-faults",), 10)


def test_quick_on_the_command_line_goes_before_the_file(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text('study = "stability"\nseed = 9\n', encoding="utf-8")
    assert _requested(path, quick=True) == StabilityOptions(quick=True, seed=9)
    assert _requested(None, quick=True) == StabilityOptions(quick=True)


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ('isolation = ["vbox"]', "allowed: `bare`"),
        ('workloads = ["exp/exp_flot"]', "(did you mean `exp/exp_float`?)"),
        ("workers = []", "allowed: at least 1 entry"),
        ('workers = "all"', 'allowed: "auto" or a list of whole numbers'),
        ("workers = [2000]", "`workers[0]` is `2000`; allowed: 1024 or less"),
        ("tolerance_percent = nan", "allowed: a finite number"),
        ("margin_percent = 0", "allowed: above 0"),
        ("iterations = 0", "allowed: 1 or more"),
        ("inputs = 301", "allowed: 300 or less"),
        ('gate = "never"', "allowed: `record`, `strict`"),
        ('affinity = ["pinned"]', "allowed: `none`, `taskset`"),
        ('tuning = ["turbo", "warp"]', '`tuning[1]` is `"warp"`; allowed: `access-monitor`'),
        ('counters = ["page-falts"]', "(did you mean `page-faults`?)"),
        ("limits.wall_time_s = 0", "`limits.wall_time_s` is `0`; allowed: above 0"),
        ("limits.memry_mib = 3", "(did you mean `memory_mib`?)"),
    ],
)
def test_a_value_outside_its_range_is_answered_with_the_range(tmp_path: Path, line: str, part: str) -> None:
    path = tmp_path / "study.toml"
    path.write_text(f'study = "stability"\n{line}\n', encoding="utf-8")
    known = study("stability").known_names()
    with pytest.raises(StudyFileError) as caught:
        read_study_file(path, {"stability": StabilityOptions}, known)
    assert "has 1 problem:\n  line 2: " in caught.value.message
    assert part in caught.value.message


def test_the_registry_knows_the_study_and_its_options() -> None:
    assert isinstance(study("stability"), Study)
    assert set(studies()) == {"stability", "scaling", "communication", "colocation", "replication"}
    assert study("stability").options is StabilityOptions
