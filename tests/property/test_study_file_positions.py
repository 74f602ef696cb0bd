"""The scanner of study files against the parser, on generated documents."""

from __future__ import annotations

import json
import tomllib
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.design.positions import locate_keys
from steelyard.design.study_file import read_study_file
from steelyard.errors import StudyFileError
from steelyard.studies.stability.options import StabilityOptions

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=8)
BARE_KEYS = st.text("abcXYZ-_019", min_size=1, max_size=5)
KEYS = BARE_KEYS | TEXTS
SCALARS = st.integers(-(2**40), 2**40) | st.booleans() | TEXTS
BLANKS = st.sampled_from(["", " ", "\t ", "  "])
COMMENTS = st.sampled_from(["", "# note", '  # [x] = \'y\' """ {'])


def as_key(key: str) -> str:
    is_bare = key != "" and all(char.isascii() and (char.isalnum() or char in "-_") for char in key)
    return key if is_bare else json.dumps(key, ensure_ascii=False)


@st.composite
def value_texts(draw: st.DrawFn, depth: int = 2) -> str:
    kind = draw(
        st.sampled_from(["scalar", "multiline", "literal", "array", "table"] if depth else ["scalar"])
    )
    if kind == "array":
        parts = draw(st.lists(value_texts(depth - 1), max_size=3))
        comma = draw(st.sampled_from([", ", ",\n  ", " ,# c ]\n"]))
        return f"[{draw(BLANKS)}{comma.join(parts)}{draw(st.sampled_from(['', ' ', chr(10)]))}]"
    if kind == "table":
        keys = draw(st.lists(KEYS, max_size=3, unique=True))
        return "{ " + ", ".join(f"{as_key(key)} = {draw(value_texts(depth - 1))}" for key in keys) + " }"
    if kind == "multiline":
        return '"""' + draw(st.sampled_from(["", "\n", "a\n[b]\n", 'say "x"\n', "tail\\\n   "])) + '"""'
    if kind == "literal":
        return draw(
            st.sampled_from(["'a # b'", "'''x\n= 1'''", "1979-05-27 07:32:00", "0x1F", "-inf", "1_0.5e3"])
        )
    scalar = draw(SCALARS)
    return json.dumps(scalar, ensure_ascii=False) if not isinstance(scalar, bool) else str(scalar).lower()


@st.composite
def documents(draw: st.DrawFn) -> str:
    lines = []
    for name in ("", *draw(st.lists(KEYS, max_size=3, unique=True))):
        if name or lines:
            lines.append(draw(st.sampled_from(["[{}]", "[[{}]]", "[ {} ]"])).format(as_key(name)))
        for key in draw(st.lists(KEYS, max_size=4, unique=True)):
            dotted = f"{as_key(key)} . inner" if draw(st.booleans()) else as_key(key)
            equals = draw(st.sampled_from(["=", " = ", "\t="]))
            lines.append(f"{draw(BLANKS)}{dotted}{equals}{draw(value_texts())} {draw(COMMENTS)}")
        lines.append(draw(COMMENTS))
    return "\n".join(lines)


def paths_of(value: Any, here: tuple[str | int, ...] = ()) -> set[tuple[str | int, ...]]:
    if isinstance(value, dict):
        inner = {path for name, each in value.items() for path in paths_of(each, (*here, name))}
    elif isinstance(value, list):
        inner = {path for index, each in enumerate(value) for path in paths_of(each, (*here, index))}
    else:
        inner = set()
    return inner | ({here} if here else set())


@settings(max_examples=400, deadline=None)
@given(documents())
def test_the_scanner_finds_exactly_the_keys_of_the_parser(text: str) -> None:
    try:
        parsed = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return  # two tables of one name, or the like
    found = locate_keys(text)
    assert set(found) == paths_of(parsed)
    assert all(1 <= line <= text.count("\n") + 1 for line in found.values())


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60) | documents().map(lambda text: f'study = "stability"\n{text}'))
def test_any_file_gives_options_or_a_study_file_error(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    path: Path = tmp_path_factory.getbasetemp() / "study.toml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with suppress(StudyFileError):
        assert isinstance(read_study_file(path, {"stability": StabilityOptions}), StabilityOptions)
