"""The environment that a program gets: what is recorded of it, and which variable it may have lacked."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from steelyard.run.redact import HIDDEN, has_secret_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue

NOT_INHERITED: Final = frozenset({"STEELYARD_METRICS_FD"})
"""Set by the launcher for each program."""
_LOCALE: Final = "LC_CTYPE"
_ALLOCATOR: Final = "_RJEM_MALLOC_CONF"
"""Set by polars when it is imported, for its own allocator (its `__init__.py`)."""
_COERCED: Final = frozenset({"C.UTF-8", "C.utf8", "UTF-8"})

_LACKING: Final = (
    (re.compile(r"error while loading shared libraries|cannot open shared object file"), "LD_LIBRARY_PATH"),
    (re.compile(r"ModuleNotFoundError|No module named|ImportError"), "PYTHONPATH"),
    (re.compile(r"JAVA_HOME|JRE_HOME"), "JAVA_HOME"),
    (
        re.compile(r"ClassNotFoundException|NoClassDefFoundError|Could not find or load main class"),
        "CLASSPATH",
    ),
    (re.compile(r"Can't locate .* in @INC"), "PERL5LIB"),
    (re.compile(r"Cannot find module"), "NODE_PATH"),
    (re.compile(r"cannot load such file"), "RUBYLIB"),
    (re.compile(r"cannot open display|unable to open display", re.IGNORECASE), "DISPLAY"),
)
"""What interpreters and the dynamic loader say, and the variable that tells them where to look.

SOURCE: ld.so(8), python(1), java launcher, perlrun(1), Node.js modules, ruby(1), Xlib.
"""
_NAME: Final = re.compile(r"\b[A-Z][A-Z0-9_]{2,}\b")


def inherited_environment() -> dict[str, str]:
    """Give the variables of this process, as its caller set them.

    What is not UTF-8 or has no name is left out, because the launcher's protocol cannot say it; see
    `unpassable`.
    """
    return {
        name: value
        for name, value in callers_environment().items()
        if name not in NOT_INHERITED and name and _is_text(name) and _is_text(value)
    }


def callers_environment() -> dict[str, str]:
    """Give the variables of this process, without those that Python and packages set for themselves.

    A build, or a run, would else depend on what was imported before it.
    """
    found = dict(os.environ)
    by_python = found.get(_LOCALE) in _COERCED  # where no locale was chosen (PEP 538)
    suspects = [name for name in (_LOCALE,) * by_python + (_ALLOCATOR,) if name in found]
    if suspects and (given := _given()) is not None:
        for name in suspects:
            if name not in given:
                del found[name]
            elif name == _ALLOCATOR:
                found[name] = given[name]  # polars puts its own settings before it
    return found


def unpassable(environment: Mapping[str, str] = os.environ) -> list[str]:
    r"""Give the names of variables that no program can be given, as they can be shown.

    Examples
    --------
    >>> unpassable({"A": "x", "B": "\udcff", "": "x"})
    ['B', '(no name)']
    """
    return [
        name.encode(errors="surrogateescape").decode(errors="backslashreplace") or "(no name)"
        for name, value in environment.items()
        if not name or not _is_text(name) or not _is_text(value)
    ]


def _given() -> dict[str, str] | None:
    """Give the variables with which this process began; ``None`` where the system does not say."""
    try:
        entries = Path("/proc/self/environ").read_bytes().split(b"\0")
    except OSError:
        return None
    return dict(os.fsdecode(entry).partition("=")[::2] for entry in entries)


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def environment_record(environment: Mapping[str, str], *, is_inherited: bool) -> dict[str, JsonValue]:
    """Give what is recorded of an environment: its names, and a hash; no value.

    Parameters
    ----------
    environment : mapping
        As a program gets it.
    is_inherited : bool
        Whether it is that of the caller.

    Returns
    -------
    dict
        ``inherited``, ``names`` and ``sha256`` of the sorted variables, each ended by a zero byte, with the
        values of secret ones hidden: two runs had the same environment where it is the same.
    """
    lines = [
        f"{name}={HIDDEN if has_secret_name(name) else value}\0"
        for name, value in sorted(environment.items())
    ]
    digest = hashlib.sha256("".join(lines).encode()).hexdigest()
    names: list[JsonValue] = [*sorted(environment)]
    return {"inherited": is_inherited, "names": names, "sha256": digest}


def environment_hint(said: str, environment: Mapping[str, str], *, can_inherit: bool) -> str | None:
    """Say which variable a program may lack, and the option that passes it on.

    Parameters
    ----------
    said : str
        What it wrote before it failed.
    environment : mapping
        What it got.
    can_inherit : bool
        Whether it would get every variable without ``--clean-environment``.

    Returns
    -------
    str or None
        ``None`` where nothing points to a variable.
    """
    named = [name for name in _NAME.findall(said) if name in os.environ]
    told = [name for pattern, name in _LACKING if pattern.search(said)]
    lacking = [name for name in dict.fromkeys((*told, *named)) if name not in environment]
    held_back = [name for name in lacking if name in os.environ]
    if held_back:
        listed = " ".join(f"--environment {name}" for name in held_back)
        are = "is" if len(held_back) == 1 else "are"
        names = ", ".join(f"`{name}`" for name in held_back)
        way = f"`{listed}` passes {'it' if len(held_back) == 1 else 'them'} on"
        without = ", or leave out `--clean-environment`" if can_inherit else ""
        return f"{names} {are} set here and not passed to the program: {way}{without}"
    if told and (absent := [name for name in lacking if name in told]):
        return f"`--environment {absent[0]}=...` tells the program where to look"
    return None
