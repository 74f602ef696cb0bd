from __future__ import annotations

import re

import pytest

from steelyard.cli import execute


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("run", "`STUDY` is missing\nThe study: `colocation`, "),
        ("analyse", "`DIRECTORY` is missing\nResult folder that "),
        ("pack r", "`--output` is missing\nArchive to write, "),
        ("pack r -o", "`-o` needs a value\nArchive to write, "),
        ("run stability --seed", "`--seed` needs a value\nSeed of "),
        ("run stability --seed x", "`--seed` is `x`; expected a whole number\n"),
        ("run communication --budget 1s", "`--budget` is `1s`; expected a number\n"),
        ("restore now", "`now` is one word too many\n"),
        ("run stability --outt r", "Unknown option: --outt. Did you mean --out?\n"),
    ],
)
def test_a_wrong_command_line_is_named(words: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(words.split()) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"error: {says}")
    verb = re.match(r"(?:run|plan) \w+|\w+", words)[0]  # type: ignore[index]
    assert f"\nhint: steelyard {verb} --help\n" in said
