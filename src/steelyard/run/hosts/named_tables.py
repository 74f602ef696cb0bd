"""TOML files of tables by name, each of a host or a device: every problem at once, with its line."""

from __future__ import annotations

import difflib
import re
import tomllib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from steelyard.design.positions import KeyPath, locate_keys
from steelyard.errors import StudyFileError
from steelyard.model.plain_file import read_plain_file

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from pathlib import Path

NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.]{0,31}")
"""No hyphen: ``DEVICE-native`` is the name of a setting."""
HOST_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,31}")
TARGET: Final = re.compile(r"(?:[A-Za-z_][\w.-]*@)?[A-Za-z0-9](?:[\w.:-]*\w)?", re.ASCII)
MOST_CPUS: Final = 4096


@dataclass(slots=True)
class Problems:
    """What is wrong in a file, with where."""

    found: list[tuple[KeyPath, str]] = field(default_factory=list)

    def add(self, where: KeyPath, what: str) -> None:
        """Note one problem."""
        self.found.append((where, what))

    def read(
        self, table: Mapping[str, Any], readers: Mapping[str, Callable[[object], Any]], where: KeyPath
    ) -> dict[str, Any]:
        """Give the values that their readers take, and note why the others are refused."""
        good: dict[str, Any] = {}
        for key, value in table.items():
            if key in readers:
                try:
                    good[key] = readers[key](value)
                except ValueError as error:
                    self.add((*where, key), str(error))
        return good


def read_tables(
    path: Path, *, kind: str, page: str, read: Callable[[Mapping[str, Any], Problems], dict[str, Any]]
) -> dict[str, Any]:
    """Read a file of tables.

    Parameters
    ----------
    path : Path
        TOML.
    kind : str
        What it is a file of, as its error says: ``device`` for code ``study-file.devices``.
    page : str
        Where its format is described.
    read : callable
        Gives what is in the document by name, and adds its problems.

    Raises
    ------
    StudyFileError
        If it cannot be read, is no TOML, or has problems: all are listed, each with its line.
    """
    code, hint = f"study-file.{kind}s", f"the format is in {page}"
    try:
        text = read_plain_file(path).decode()
        document = tomllib.loads(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        message = f"cannot read the {kind} file `{path}`: {reason}"
        raise StudyFileError(message, hint=hint, code=code) from error
    problems = Problems()
    found = read(document, problems)
    if problems.found:
        lines = locate_keys(text)
        listed = sorted(
            (lines.get(where, 0), ".".join(map(str, where)), what) for where, what in problems.found
        )
        count = "1 problem" if len(listed) == 1 else f"{len(listed)} problems"
        said = "\n".join(f"  line {line}: `{where}` {what}" for line, where, what in listed)
        message = f"the {kind} file `{path}` has {count}:\n{said}"
        raise StudyFileError(message, hint=hint, code=code)
    return found


def tables_of(
    document: Mapping[str, Any], key: str, problems: Problems, name_rule: re.Pattern[str] = NAME
) -> dict[str, Any]:
    """Give the tables below a key, by name."""
    signs = ", `_`, `-` or `.`" if name_rule is HOST_NAME else ", `_` or `.`"
    tables = document.get(key, {})
    if not isinstance(tables, dict) or not tables:
        problems.add((key,), f"must contain at least one table `[{key}.NAME]`")
        return {}
    for name, table in tables.items():
        if name_rule.fullmatch(name) is None:
            what = f"is not a name: a letter, then letters, digits{signs}, at most 32"
            problems.add((key, name), what)
        if not isinstance(table, dict):
            problems.add((key, name), "must be a table")
    return tables


def say_unknown(key: str, allowed: Collection[str], known: str) -> str:
    """Say that a key is unknown, and which one may be meant."""
    near = difflib.get_close_matches(key, allowed, n=1)
    return f"is unknown; did you mean `{near[0]}`? {known}" if near else f"is unknown; {known}"


def quoted(names: Collection[str]) -> str:
    """Give names in order, as an error lists them."""
    return ", ".join(f"`{one}`" for one in sorted(names))


def read_cpus(value: object) -> tuple[int, ...]:
    """Read a list of CPU numbers."""
    numbers = value if isinstance(value, list) else []
    good = [one for one in numbers if isinstance(one, int) and not isinstance(one, bool)]
    if not good or len(good) != len(numbers) or not all(0 <= one < MOST_CPUS for one in good):
        message = f"is {value!r}; expected a list of CPU numbers, e.g. [0, 1]"
        raise ValueError(message)
    return tuple(sorted(set(good)))


def whole(lowest: int, highest: int, unit: str) -> Callable[[object], int]:
    """Give what reads a whole number of a range."""

    def read(value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not lowest <= value <= highest:
            message = f"is {value!r}; expected a whole number from {lowest} to {highest} [{unit}]"
            raise ValueError(message)
        return value

    return read


def read_target(value: object) -> str:
    """Read ``[USER@]HOST``, never a word that ssh takes as an option."""
    if not isinstance(value, str) or TARGET.fullmatch(value) is None:
        message = f"is {value!r}; expected `[USER@]HOST`"
        raise ValueError(message)
    return value


def read_words(value: object) -> tuple[str, ...]:
    """Read a list of words."""
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        message = f'is {value!r}; expected a list of words, e.g. ["-p", "2222"]'
        raise ValueError(message)
    return tuple(value)
