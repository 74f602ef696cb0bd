from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import pytest
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo

from steelyard.design.study_file import read_study_file, require_known
from steelyard.errors import StudyFileError

if TYPE_CHECKING:
    from pathlib import Path

CLOSED = ConfigDict(frozen=True, extra="forbid", strict=True)


def check_name(name: str, info: ValidationInfo) -> str:
    return require_known("name", name, info)


Name = Annotated[str, AfterValidator(check_name)]


class Bounds(BaseModel):
    model_config = CLOSED
    memory_mib: int = Field(default=1, ge=1)


class Options(BaseModel):
    model_config = CLOSED
    study: Literal["probe"] = "probe"
    seed: int = Field(default=1, ge=0)
    share: float = Field(default=0.5, gt=0, lt=1)
    quick: bool = False
    names: tuple[Name, ...] = Field(default=("a",), min_length=1)
    kind: Literal["early", "late"] = "early"
    limits: Bounds = Bounds()


def read(folder: Path, text: str) -> Options:
    path = folder / "study.toml"
    path.write_text(text, encoding="utf-8")
    found = read_study_file(path, {"probe": Options}, {"name": ["alpha", "beta"]})
    assert isinstance(found, Options)
    return found


def complaint(folder: Path, text: str) -> str:
    with pytest.raises(StudyFileError) as caught:
        read(folder, text)
    assert caught.value.hint
    assert str(folder / "study.toml") in caught.value.message
    return caught.value.message


def test_a_good_file_gives_typed_options(tmp_path: Path) -> None:
    found = read(tmp_path, 'study = "probe"\nseed = 7\nnames = ["alpha"]\nlimits = { memory_mib = 3 }\n')
    assert (found.seed, found.names, found.limits.memory_mib) == (7, ("alpha",), 3)


def test_all_problems_are_listed_at_once_with_path_and_line(tmp_path: Path) -> None:
    text = """# a comment
study = "probe"
sed = 4
seed = -1
share = 1.0
quick = "yes"
kind = "lat"

[limits]
memory_mib = 0
disk = 7
"""
    message = complaint(tmp_path, text)
    assert "has 7 problems" in message
    for part in (
        "line 3: `sed` is not a known key (did you mean `seed`?); allowed here: `study`, `seed`",
        "line 4: `seed` is `-1`; allowed: 0 or more",
        "line 5: `share` is `1.0`; allowed: below 1",
        'line 6: `quick` is `"yes"`; allowed: true or false',
        'line 7: `kind` is `"lat"` (did you mean `late`?); allowed: `early`, `late`',
        "line 10: `limits.memory_mib` is `0`; allowed: 1 or more",
        "line 11: `limits.disk` is not a known key; allowed here: `memory_mib`",
    ):
        assert part in message


def test_an_unknown_name_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    message = complaint(tmp_path, 'study = "probe"\nnames = ["alfa"]\n')
    assert "has 1 problem:" in message
    assert 'line 2: `names[0]` is `"alfa"` (did you mean `alpha`?); allowed: `alpha`, `beta`' in message


def test_a_number_is_not_taken_for_a_text_nor_a_float_for_a_whole_number(tmp_path: Path) -> None:
    message = complaint(tmp_path, 'study = "probe"\nseed = 1.0\nnames = [3]\nlimits = 4\n')
    assert "line 2: `seed` is `1.0`; allowed: a whole number" in message
    assert "line 3: `names[0]` is `3`; allowed: a text in quotes" in message
    assert "line 4: `limits` is `4`; allowed: a table" in message


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("seed = 3\n", "`study` is missing; allowed: `probe`"),
        ('study = "prob"\n', 'line 1: `study` is `"prob"` (did you mean `probe`?)'),
        ("\n\nstudy = 4\n", "line 3: `study` is `4`"),
        ('study = "probe"\nseed = = 3\n', "line 2, column 8: not TOML"),
        ('study = "probe"\nseed = 1\nseed = 2\n', "line 3"),
        ('study = "probe', "line 1, column"),
    ],
)
def test_a_file_that_cannot_be_checked_says_where_it_fails(tmp_path: Path, text: str, part: str) -> None:
    assert part in complaint(tmp_path, text)


def test_bytes_that_are_not_text_are_named_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_bytes(b'study = "probe"\nnames = ["\xff"]\n')
    with pytest.raises(StudyFileError, match="line 2: byte 0xff is not UTF-8"):
        read_study_file(path, {"probe": Options})


@pytest.mark.parametrize("name", ["absent.toml", "."])
def test_a_file_that_cannot_be_read_is_one_paragraph(tmp_path: Path, name: str) -> None:
    with pytest.raises(StudyFileError, match="cannot read study file") as caught:
        read_study_file(tmp_path / name, {"probe": Options})
    assert caught.value.exit_code == 2
