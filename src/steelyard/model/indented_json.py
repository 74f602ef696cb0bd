"""Long JSON documents written piece by piece, with the bytes of `json.dumps(asdict(value), indent=1)`.

`asdict` copies every number of a document, and the standard library indents in Python alone: findings of
100 000 cells take gigabytes and minutes that way. Here each object of single values is one call in C.
"""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_NESTED: Final = (dict, list, tuple)
_SINGLE: Final = frozenset({str, int, float, bool, type(None)})


def indented(value: object, depth: int = 0) -> str:
    """Write a value as it stands at a depth of a document.

    Parameters
    ----------
    value : object
        What JSON has, and dataclasses of it; keys are texts.
    depth : int
        Blanks before its closing bracket.

    Raises
    ------
    ValueError
        If a number is not finite.
    """
    if is_dataclass(value):
        value = by_name(value)
    if not isinstance(value, _NESTED) or not value:
        return _encoder(depth).encode(value)
    entries = value.values() if isinstance(value, dict) else value
    if not any(map(_is_nested, entries)):
        # Its own separators are all that is between single values.
        text = _encoder(depth + 1).encode(value)
        return f"{text[0]}\n{' ' * (depth + 1)}{text[1:-1]}\n{' ' * depth}{text[-1]}"
    written = (indented(each, depth + 1) for each in entries)
    if isinstance(value, dict):
        written = (f"{_encoder(0).encode(key)}: {text}" for key, text in zip(value, written, strict=True))
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    between = f",\n{' ' * (depth + 1)}"
    return f"{opening}\n{' ' * (depth + 1)}{between.join(written)}\n{' ' * depth}{closing}"


def indented_list(entries: Iterable[object], depth: int) -> Iterator[str]:
    """Write a long list entry by entry, as `indented` writes it whole."""
    is_empty = True
    for each in entries:
        yield ("[" if is_empty else ",") + f"\n{' ' * (depth + 1)}" + indented(each, depth + 1)
        is_empty = False
    yield "[]" if is_empty else f"\n{' ' * depth}]"


def _is_nested(value: object) -> bool:
    # Most are single values.
    return type(value) not in _SINGLE and (isinstance(value, _NESTED) or is_dataclass(value))


def by_name(value: object) -> dict[str, object]:
    """Give the fields of a dataclass by name, as they are."""
    kind: Any = type(value)
    return {name: getattr(value, name) for name in _names(kind)}


@cache
def _names(kind: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


@cache
def _encoder(depth: int) -> json.JSONEncoder:
    return json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(f",\n{' ' * depth}", ": "))
