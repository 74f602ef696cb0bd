"""Texts from outside as a report shows them: what is invisible, or turns what is beside it, is written out.

What is recorded stays as it is; only what people read passes through here.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_HIDDEN: Final = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
"""Unicode's classes of controls, formats, private signs, halves of pairs, ends of lines and paragraphs."""

_NO_TEXTS: Final = frozenset({int, float, bool, type(None)})
_KEPT: Final = "\n\t"
"""Layout of texts of more than one line, such as queries; no format shows more of them than a space."""

AS_ONE_LINE: Final = str.maketrans(dict.fromkeys(_KEPT, " "))
"""Translates a text of more than one line into one line, where it names something."""

_JOINERS: Final = "\u200c\u200d"
_JOINED: Final = range(0x0600, 0x0E00)
"""Scripts from Arabic to Sinhala, in which a joiner between two letters is part of how a word is spelt."""

LONGEST_NAME: Final = 160
"""Characters of a name in a heading, a sentence or a card; its table and its CSV file have it whole."""

LONGEST_TITLE: Final = 400
"""Characters of a heading, or of a value on a card."""

ELLIPSIS: Final = "…"
_LONG_WORD: Final = re.compile(rf"[^\s`]{{{LONGEST_NAME + 1},}}|(?<=`)[^`]{{{LONGEST_NAME + 1},}}(?=`)")
_T = TypeVar("_T")
_FIELDS: Final[dict[type, tuple[str, ...]]] = {}
"""Fields of the data classes that were met."""


def shown(text: str) -> str:
    """Give a text in which no sign is hidden: each one that would be is written as ``<U+202E>``.

    A joiner between two letters of a script that is spelt with joiners stays; anywhere else it would make two
    names look the same.

    Examples
    --------
    >>> shown("new" + chr(0x202E)), shown("na" + chr(0xEF) + "ve")
    ('new<U+202E>', 'naïve')
    """
    if text.isprintable():
        return text
    return "".join(f"<U+{ord(sign):04X}>" if _is_hidden(text, at) else sign for at, sign in enumerate(text))


def inert(text: str) -> str:
    r"""Give a text of which GitHub takes no line for a command: it trims lines, and reads ``##[`` anywhere.

    Examples
    --------
    >>> inert("name" + chr(10) + "  ::error::x"), inert("##[warning]x")
    ('name\n|   ::error::x', '## [warning]x')
    """
    lines = (
        f"| {line}" if line.lstrip().startswith("::") else line for line in re.split(r"\r\n|[\r\n]", text)
    )
    return "\n".join(lines).replace("##[", "## [")


def _is_hidden(text: str, at: int) -> bool:
    sign = text[at]
    if sign in _KEPT or unicodedata.category(sign) not in _HIDDEN:
        return False
    is_between = 0 < at < len(text) - 1
    return not (
        sign in _JOINERS and is_between and all(ord(text[near]) in _JOINED for near in (at - 1, at + 1))
    )


def all_shown(value: _T, fitted: Mapping[type, Mapping[str, Callable[[str], str]]] | None = None) -> _T:
    """Give a value with every text in it as it is shown, in lists, mappings and data classes as well.

    Parameters
    ----------
    value : object
        What holds nothing to change is given back itself.
    fitted : mapping or None
        By data class and field, what makes a text short enough for where it stands.
    """
    changed: _T = _all_shown(value, fitted or {})
    return changed


def _all_shown(value: Any, fitted: Mapping[type, Mapping[str, Callable[[str], str]]]) -> Any:
    kind = type(value)
    if kind in _NO_TEXTS:
        return value
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, (list, tuple)):
        # Columns of a chart are long, and hardly ever have something to change.
        kinds = set(map(type, value))
        if kinds <= _NO_TEXTS or (kinds == {str} and all(map(str.isprintable, value))):
            return value
        items = [_all_shown(each, fitted) for each in value]
        is_same = all(new is old for new, old in zip(items, value, strict=True))
        return value if is_same else type(value)(items)
    if isinstance(value, dict):
        return {_all_shown(key, fitted): _all_shown(each, fitted) for key, each in value.items()}
    return _fields_shown(value, fitted) if _names(kind) else value


def _names(kind: type) -> tuple[str, ...]:
    """Give the fields of a data class; of any other class none."""
    if kind not in _FIELDS:
        _FIELDS[kind] = tuple(each.name for each in fields(kind)) if is_dataclass(kind) else ()
    return _FIELDS[kind]


def _fields_shown(value: Any, fitted: Mapping[type, Mapping[str, Callable[[str], str]]]) -> Any:
    fits, changed = fitted.get(type(value), {}), {}
    for name in _names(type(value)):
        given = getattr(value, name)
        made = _all_shown(given, fitted)
        if name in fits:
            fit = fits[name]
            made = tuple(map(fit, made)) if isinstance(made, tuple) else fit(made)
        if made is not given and made != given:
            changed[name] = made
    return replace(value, **changed) if changed else value


def shortened(text: str, longest: int = LONGEST_NAME) -> str:
    """Give the begin of a text that is too long for where it stands.

    Examples
    --------
    >>> shortened("abcdef", 4), shortened("abcd", 4)
    ('abc…', 'abcd')
    """
    return text if len(text) <= longest else _begin(text, longest - 1) + ELLIPSIS


def as_title(text: str) -> str:
    """Give a heading, or what stands on a card, with no name and no whole that is too long for it."""
    return shortened(with_short_names(text), LONGEST_TITLE)


def with_short_names(text: str) -> str:
    """Give a sentence in which no word, and nothing between backticks, is longer than a name may be."""
    if len(text) <= LONGEST_NAME:
        return text
    return _LONG_WORD.sub(lambda match: shortened(match[0]), text)


LONGEST_LABEL: Final = 64
"""Characters of the name of a row; a narrow figure shows fewer."""

_PARTED: Final = re.compile(r"[-/.,_: ]")
_FEWEST_DROPPED: Final = 8


def distinct_labels(names: Sequence[str], longest: int = LONGEST_LABEL) -> list[str]:
    """Give names short enough for a chart, no two alike that differ.

    What all of them begin with goes first, up to a sign that parts it from the rest; of a name that is still
    too long the middle goes, because names of one kind differ at their ends.

    Examples
    --------
    >>> distinct_labels(["org.example.bench.Sort.small", "org.example.bench.Sort.large"], 12)
    ['…small', '…large']
    >>> distinct_labels(["a-name-of-many-words-and-more"], 12)
    ['a-name…-more']
    """
    begin = 0
    if len(set(names)) > 1 and max(map(len, names)) > longest:
        first, last = min(names), max(names)
        shared = next((at for at, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
        ends = [at.end() for at in _PARTED.finditer(first[:shared])]
        begin = ends[-1] if ends and ends[-1] >= _FEWEST_DROPPED else 0
    labels = [_without_middle(f"{ELLIPSIS}{name[begin:]}" if begin else name, longest) for name in names]
    taken: dict[str, str] = {}
    for at, (name, label) in enumerate(zip(names, labels, strict=True)):
        if taken.setdefault(label, name) != name:
            labels[at] = f"{_without_middle(label, longest - 5)} ({at + 1})"
            taken[labels[at]] = name
    return labels


def _without_middle(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    head = longest // 2
    end = len(text) - (longest - head - 1)
    while end < len(text) and unicodedata.combining(text[end]):
        end += 1
    return _begin(text, head).rstrip() + ELLIPSIS + text[end:].lstrip()


def _begin(text: str, count: int) -> str:
    """Give the first characters of a text, the last of them with its accents or not at all."""
    while count and unicodedata.combining(text[count]):
        count -= 1
    return text[:count]
