"""Placeholders for where an author keeps things: his home folder, his Python, Steelyard and its programs.

What an anonymous package says of such a place is a placeholder; who repeats it has places of his own.
"""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from steelyard.run.programs import PACKAGE

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard.model import Plan

_FOLDERS: Final = r"(?:/[\w.+@~-]+)+"
_BEGINS: Final = r"(?:(?<![\w.~/@-])|(?<=-\w)(?<!\w-\w)|(?<=://))"
"""A path begins there: it is not the end of a longer one, and may stand behind an option of one letter."""

_ENDS: Final = r"(?![\w+@~-]|\.\w)"
_PLACES: Final = (
    (re.compile(rf"{_BEGINS}{_FOLDERS}/steelyard/_bin{_ENDS}"), "{programs}"),
    (re.compile(rf"{_BEGINS}{_FOLDERS}/steelyard/_workloads{_ENDS}"), "{workloads}"),
    (re.compile(rf"{_BEGINS}{_FOLDERS}/steelyard(?=/(?:cli|run|share|studies)/)"), "{steelyard}"),
    (
        re.compile(rf"{_BEGINS}(?!/usr/(?:local/)?bin/){_FOLDERS}/bin/python3?(?:\.\d+)?{_ENDS}(?!/)"),
        "{python}",
    ),
    (re.compile(r"(?<=process )(\d+) \(`[^`]*`"), r"\1 (`{command}`"),
)
"""What other than the home folder is replaced, and by what; the last one names who else was measuring."""

_OF_SYSTEM: Final = (
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
    "/snap/bin",
)
_OF_PERSONS: Final = re.compile(r"/(?:home|Users)/[\w.-]+|/root")


def put_placeholders(plan: Plan) -> Callable[[str], str]:
    """Give what puts placeholders into a text of a result.

    The home folder is the one of this user, or one that the plan gives its programs.

    Parameters
    ----------
    plan : Plan
        Of the result.
    """
    environments = [cell.execution.environment for cell in plan.cells if cell.execution is not None]
    given = {each.get("HOME", "") for each in environments}
    searched = {each["PATH"]: _of_everybody(each["PATH"]) for each in environments if each.get("PATH")}
    here = {str(Path.home()), str(Path.home().resolve())} - {"/"}
    homes = sorted({*here, *filter(_OF_PERSONS.fullmatch, given)}, key=len, reverse=True)
    home = re.compile(rf"{_BEGINS}(?:{'|'.join(map(re.escape, homes)) or '(?!)'}){_ENDS}")

    def put(text: str) -> str:
        for path, said in searched.items():
            text = text.replace(path, said)
        for place, placeholder in _PLACES:
            text = place.sub(placeholder, text)
        return home.sub("{home}", text)

    return put


def _of_everybody(path: str) -> str:
    """Give a search path in which a placeholder stands for folders that not everybody has."""
    return ":".join(
        dict.fromkeys(each if each in _OF_SYSTEM else "{path}" for each in path.split(":") if each)
    )


def places_here() -> dict[str, str]:
    """Give what each placeholder of a place stands for on this machine."""
    return {
        "{programs}": str(PACKAGE / "_bin"),
        "{workloads}": str(PACKAGE / "_workloads"),
        "{steelyard}": str(PACKAGE),
        "{python}": sys.executable,
        "{home}": str(Path.home()),
    }


def filled_text(text: str) -> str:
    """Give a text with the places of this machine.

    Examples
    --------
    >>> filled_text("run {home}/x") == f"run {Path.home()}/x"
    True
    """
    for placeholder, place in places_here().items():
        text = text.replace(placeholder, place)
    return text


def filled(plan: Plan) -> Plan:
    """Give the plan of an anonymous package as this machine runs it; its id stays that of the package."""
    cells = tuple(
        replace(
            cell,
            levels={name: filled_text(level) for name, level in cell.levels.items()},
            execution=cell.execution
            and replace(cell.execution, command=tuple(map(filled_text, cell.execution.command))),
        )
        for cell in plan.cells
    )
    options = {
        name: filled_text(value) if isinstance(value, str) else value for name, value in plan.options.items()
    }
    return replace(plan, cells=cells, options=options)
