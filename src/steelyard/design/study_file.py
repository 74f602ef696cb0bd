"""Study files: TOML in, checked options out, every problem at once with its path and line."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError, ValidationInfo
from pydantic_core import PydanticCustomError

from steelyard.design.positions import KeyPath, locate_keys
from steelyard.errors import StudyFileError
from steelyard.model.plain_file import read_plain_file
from steelyard.units import format_count

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from pydantic_core import ErrorDetails

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of file.

    Parameters
    ----------
    name : str
        As messages call it.
    reference : str
        Page of the documentation that lists its keys.
    """

    name: str
    reference: str


_STUDY: Final = Kind("study file", "docs/reference/study-file.md")


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing wrong with a study file.

    Parameters
    ----------
    line : int
        From 1; 0 where the problem is something absent from the whole file.
    path : str
        Keys joined by dots, indices in brackets.
    text : str
        What is wrong, and what is allowed.
    """

    line: int
    path: str
    text: str

    def __str__(self) -> str:
        where = f"line {self.line}: " if self.line else ""
        return f"{where}`{self.path}` {self.text}"


def read_study_file(
    path: Path,
    options_by_study: Mapping[str, type[BaseModel]],
    known: Mapping[str, Collection[str]] | None = None,
) -> BaseModel:
    """Read a study file.

    Parameters
    ----------
    path : Path
        A TOML file.
    options_by_study : mapping
        The options that each known study takes, by its name; a model has a field ``study``.
    known : mapping or None
        Names there are of each kind of thing that plug-ins provide, for `require_known`.

    Returns
    -------
    BaseModel
        Options of the study the file names.

    Raises
    ------
    StudyFileError
        If the file cannot be read, is not TOML, names no known study, or has unknown keys or
        values outside their range. All problems are listed, each with its line.
    """
    document, lines = _read(path, _STUDY)
    study = document.get("study")
    options = options_by_study.get(study) if isinstance(study, str) else None
    if options is None:
        allowed = ", ".join(f"`{name}`" for name in sorted(options_by_study))
        found = "is missing" if study is None else f"is {_quote(study)}{_nearest(study, options_by_study)}"
        problem = Problem(lines.get(("study",), 0), "study", f"{found}; allowed: {allowed}")
        raise _failure(path, [problem], _STUDY)
    return _validated(path, (document, lines), options, _STUDY, known)


def read_options_file(path: Path, options: type[M], kind: Kind) -> M:
    """Read a TOML file that contains options of one kind.

    Parameters
    ----------
    path : Path
        The file.
    options : type
        Model of what it contains.
    kind : Kind
        What it is called in messages.

    Raises
    ------
    StudyFileError
        As `read_study_file`.
    """
    return _validated(path, _read(path, kind), options, kind)


def _validated(
    path: Path,
    found: tuple[dict[str, Any], dict[KeyPath, int]],
    options: type[M],
    kind: Kind,
    known: Mapping[str, Collection[str]] | None = None,
) -> M:
    document, lines = found
    try:
        return options.model_validate(frozen(document), context=known)
    except ValidationError as error:
        problems = {
            _problem(details, document, lines, options)
            for details in error.errors(include_url=False)
            if not _is_echo(details)
        }
        raise _failure(path, sorted(problems), kind) from error


def require_known(kind: str, name: str, info: ValidationInfo) -> str:
    """Check a name against those there are; to be called by a validator of the options.

    Parameters
    ----------
    kind : str
        Kind of thing (``isolation``, ``workload`` ...), a key of `known` of `read_study_file`.
    name : str
        Name in the file.
    info : ValidationInfo
        Holds what is known; a kind that is not listed allows every name.

    Raises
    ------
    PydanticCustomError
        With the allowed names; becomes part of the `StudyFileError`.
    """
    known = (info.context or {}).get(kind)
    if known is None or name in known:
        return name
    raise unknown_name(sorted(known))


def unknown_name(allowed: Sequence[str]) -> PydanticCustomError:
    """Give the error of a validator that found none of the allowed names."""
    return PydanticCustomError(_UNKNOWN_NAME, "unknown name", {"known": list(allowed)})


def _read(path: Path, kind: Kind) -> tuple[dict[str, Any], dict[KeyPath, int]]:
    """Give what a file contains, and the line of each key."""
    try:
        text = read_plain_file(path).decode("utf-8")
    except OSError as error:
        message = f"cannot read {kind.name} `{path}`: {error.strerror}"
        hint = f"{kind.reference} contains an example to start from"
        raise StudyFileError(message, hint=hint, code="study-file.absent") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        message = f"{kind.name} `{path}`, line {line}: byte {error.object[error.start]:#04x} is not UTF-8"
        raise StudyFileError(message, hint="save the file as UTF-8", code="study-file.encoding") from error

    try:
        return tomllib.loads(text), locate_keys(text)
    except tomllib.TOMLDecodeError as error:
        where = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        line, column = (int(where[1]), int(where[2])) if where else (text.count("\n") + 1, 1)
        reason = re.sub(r" \(at .*\)$", "", str(error))
        message = f"{kind.name} `{path}`, line {line}, column {column}: not TOML: {reason}"
        hint = 'write texts in double quotes, lists in brackets: isolation = ["bare", "sandbox"]'
        raise StudyFileError(message, hint=hint, code="study-file.syntax") from error


def _failure(path: Path, problems: list[Problem], kind: Kind) -> StudyFileError:
    count = format_count(len(problems), "problem")
    listed = "\n".join(f"  {problem}" for problem in problems)
    hint = f"{kind.reference} lists every key with its range"
    return StudyFileError(
        f"{kind.name} `{path}` has {count}:\n{listed}", hint=hint, code="study-file.invalid"
    )


def _problem(
    details: ErrorDetails, document: dict[str, Any], lines: dict[KeyPath, int], options: type[BaseModel]
) -> Problem:
    path = _path_in_document(details["loc"], document)
    text = describe_problem(details, path, options)
    line = next((lines[path[:size]] for size in range(len(path), 0, -1) if path[:size] in lines), 0)
    return Problem(line, _join(path), text)


def _is_echo(details: ErrorDetails) -> bool:
    """Whether a list counts as too short only because its entries are wrong, which is said already."""
    return details["type"] == "too_short" and len(details["input"]) >= details["ctx"]["min_length"]


def _path_in_document(location: tuple[str | int, ...], document: object) -> KeyPath:
    """Drop the parts of a location that name branches of a union: they are not in the document."""
    path: list[str | int] = []
    here: Any = document
    for index, part in enumerate(location):
        is_inside = (isinstance(here, dict) and part in here) or (
            isinstance(here, list | tuple) and isinstance(part, int)
        )
        if is_inside:
            path.append(part)
            here = here[part]
        elif isinstance(here, dict) and index == len(location) - 1:
            path.append(part)  # a missing key
    return tuple(path)


def describe_problem(details: ErrorDetails, path: KeyPath, options: type[BaseModel]) -> str:
    """Say what is wrong with a value and what is allowed.

    Parameters
    ----------
    details : dict
        One error of a validation.
    path : tuple
        Where the value stands.
    options : type
        Model that was validated.
    """
    kind = details["type"]
    if kind == "missing":
        return "is missing"
    if kind == "extra_forbidden":
        known = _known_keys(options, path[:-1])
        return f"is not a known key{_nearest(path[-1], known)}; allowed here: {_list(known)}"
    found, context = details["input"], details.get("ctx", {})
    if kind in {"literal_error", _UNKNOWN_NAME}:
        allowed = context.get("known") or re.findall(r"'([^']*)'", str(context["expected"]))
        return f"is {_quote(found)}{_nearest(found, allowed)}; allowed: {_list(allowed)}"
    if kind == "value_error":
        return f"is {_quote(found)}; {context['error']}"
    wanted = _RANGE_TEXTS.get(kind, "").format(**context) or _TYPE_TEXTS.get(kind)
    return f"is {_quote(found)}; {f'allowed: {wanted}' if wanted else details['msg']}"


_UNKNOWN_NAME: Final = "unknown_name"
_RANGE_TEXTS: Final = {
    "greater_than_equal": "{ge} or more",
    "greater_than": "above {gt}",
    "less_than_equal": "{le} or less",
    "less_than": "below {lt}",
    "too_short": "at least {min_length} entry",
}
_TYPE_TEXTS: Final = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "string_type": "a text in quotes",
    "bool_type": "true or false",
    "tuple_type": "a list in brackets",
    "list_type": "a list in brackets",
    "model_type": "a table",
    "model_attributes_type": "a table",
    "dict_type": "a table",
}


def _known_keys(options: type[BaseModel], path: KeyPath) -> list[str]:
    """Give the keys allowed in the table at a path."""
    model = options
    for part in path:
        field = model.model_fields.get(str(part))
        inner = field.annotation if field is not None else None
        if get_origin(inner) is dict:
            inner = get_args(inner)[1]
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            model = inner
    return list(model.model_fields)


def _nearest(found: object, known: Mapping[str, object] | list[str]) -> str:
    close = get_close_matches(str(found), list(known), n=1)
    return f" (did you mean `{close[0]}`?)" if close else ""


def _list(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _quote(value: object) -> str:
    return f"`{_as_toml(value)}`"


def _as_toml(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_as_toml, value))}]"
    return "a table" if isinstance(value, dict) else str(value)


def frozen(value: object) -> object:
    """Give a document with tuples for lists: options are values.

    Examples
    --------
    >>> frozen({"workers": [1, 2]})
    {'workers': (1, 2)}
    """
    if isinstance(value, dict):
        return {name: frozen(inner) for name, inner in value.items()}
    return tuple(map(frozen, value)) if isinstance(value, list) else value


def _join(path: KeyPath) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text
