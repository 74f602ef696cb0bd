from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel

from steelyard.errors import StudyFileError, UsageError
from steelyard.studies.replication.options import ReplicationOptions, settle
from steelyard.studies.request import requested_options
from steelyard.study import study

if TYPE_CHECKING:
    from pathlib import Path

SHARED = ("seed", "quick", "gate", "gate_retries", "tuning", "out", "limits")


@pytest.fixture
def section(pytestconfig: pytest.Config) -> str:
    page = (pytestconfig.rootpath / "docs/reference/study-file.md").read_text(encoding="utf-8")
    return re.split(r"\n## ", page.partition("## Keys of the replication study")[2])[0]


def keys(options: BaseModel) -> dict[str, object]:
    """Give every key with its value, those of tables with a dot."""
    found: dict[str, object] = {}
    for name in type(options).model_fields:
        value = getattr(options, name)
        inner = keys(value) if isinstance(value, BaseModel) and name != "own_benchmark" else {}
        found |= {f"{name}.{key}": each for key, each in inner.items()} or {name: value}
    return found


def test_every_key_stands_in_the_reference(section: str) -> None:
    listed = {name for line in section.splitlines() for name in re.findall(r"`([a-z0-9_.]+)`", line)}
    listed |= {
        f"{table}.{name[1:]}"
        for line in section.splitlines()
        if (table := line.removeprefix("| `").partition(".")[0]) in {"e4", "cause_tree"}
        for name in re.findall(r"`(\.[a-z_]+)`", line)
    }
    known = {name for name in keys(ReplicationOptions()) if name.partition(".")[0] not in SHARED}
    assert known <= listed
    assert set(SHARED) <= listed


def test_the_documented_defaults_are_the_real_ones(section: str) -> None:
    full, quick = (keys(settle(ReplicationOptions(quick=is_quick))) for is_quick in (False, True))
    checked = 0
    for line in section.splitlines():
        cells = [each.strip() for each in line.strip("|").split("|")]
        name = cells[0].strip("`")
        if name in full and cells[1] in {"whole number", "number"}:
            assert (cells[3], cells[4] or cells[3]) == tuple(
                str(each[name]).replace("None", "none") for each in (full, quick)
            )
            checked += 1
    assert checked >= 10


@pytest.mark.parametrize(
    "given", [{"blocks": 4}, {"experiments": ("e5",)}, {"containers": "lxc"}, {"planted": "gremlins"}]
)
def test_what_is_out_of_range_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=f"--{next(iter(given))}"):
        requested_options(study("replication"), None, given)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("[e1]\niteration_ms = 1\n", "e1.iteration_ms"),
        ("[e2]\ncalls = 10.5\n", "e2.calls"),
        ("[e3]\nspeed = 3\n", "e3.speed"),
        ('[[interventions]]\nname = "Big Heap"\nsentence = "x"\n', "interventions[0].name"),
    ],
)
def test_a_wrong_study_file_is_refused_with_the_path_in_it(tmp_path: Path, text: str, path: str) -> None:
    file = tmp_path / "study.toml"
    file.write_text(f'study = "replication"\n{text}', encoding="utf-8")
    with pytest.raises(StudyFileError) as caught:
        requested_options(study("replication"), file, {})
    assert path in str(caught.value)


@pytest.mark.parametrize(
    "asked",
    [{"experiments": ("e1", "e1")}, {"causes": ("clock", "clock")}, {"e3": {"mix": {"read": 0.5}}}],
)
def test_what_contradicts_itself_is_refused(asked: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        settle(ReplicationOptions.model_validate(asked))


def test_what_is_left_open_of_a_table_is_filled_in_and_the_rest_kept() -> None:
    settled = settle(ReplicationOptions.model_validate({"quick": True, "e1": {"iterations": 7}}))
    assert (settled.e1.iterations, settled.e1.warm_up_iterations) == (7, 2)
