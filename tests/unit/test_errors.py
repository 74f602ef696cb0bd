from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from steelyard import errors
from steelyard.errors import SteelyardError


def subclasses(kind: type[SteelyardError]) -> list[type[SteelyardError]]:
    direct = kind.__subclasses__()
    return direct + [deep for child in direct for deep in subclasses(child)]


def test_codes_are_unique() -> None:
    codes = [kind.code for kind in subclasses(SteelyardError)]
    assert len(codes) == len(set(codes))


def test_every_class_stands_in_the_error_reference() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "errors.md"
    text = page.read_text(encoding="utf-8")
    for kind in subclasses(SteelyardError):
        assert f"| `{kind.__name__}` | `{kind.code}` | {kind.exit_code} |" in text


@pytest.mark.parametrize("kind", subclasses(SteelyardError))
def test_an_error_survives_pickling(kind: type[SteelyardError]) -> None:
    error = kind("what happened", hint="what to do", code="special")
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert (type(copy), copy.message, copy.hint, copy.code) == (
        kind,
        "what happened",
        "what to do",
        "special",
    )


def test_the_module_exports_only_steelyard_errors() -> None:
    public = [
        value for name, value in vars(errors).items() if isinstance(value, type) and not name.startswith("_")
    ]
    assert all(issubclass(value, SteelyardError) for value in public)
