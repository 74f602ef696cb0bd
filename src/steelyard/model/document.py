"""Reading and writing the JSON files of a result folder: the schema first, then the content."""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast
from weakref import WeakValueDictionary

from steelyard.errors import DataError, unwritable
from steelyard.model.plain_file import read_plain_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from _typeshed import DataclassInstance
    from pydantic import TypeAdapter

T = TypeVar("T")

_HALF: Final = re.compile(rb"\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]")
"""How a file may spell half of a pair that stands for one character, alone or with its other half."""

_ADAPTERS: Final[dict[type[Any], TypeAdapter[Any]]] = {}
_SHOWN_CHARACTERS: Final = 160
_LARGE_BYTES: Final = 1 << 20
_LAST_BYTES: Final = 400
_HELD: Final[WeakValueDictionary[tuple[object, ...], Any]] = WeakValueDictionary()
FOLDER_HINT: Final = "give the folder that `steelyard run`, `steelyard compare` or `steelyard import` wrote"
OTHER_VERSION_HINT: Final = "use the Steelyard that wrote it, or a newer one"


def write_document(path: Path, document: DataclassInstance, *, hint: str, indent: int | None = None) -> None:
    """Write a JSON file; it is whole, or the older one stays.

    Parameters
    ----------
    path : Path
        The file.
    document : dataclass
        What it holds; the schema is a field of it.
    hint : str
        The next step where it cannot be written.
    indent : int or None
        Spaces of each level; all on one line by default.

    Raises
    ------
    DataError
        If it cannot be written.
    """
    text = json.dumps(asdict(document), indent=indent, ensure_ascii=False, allow_nan=False) + "\n"
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        raise unwritable(path, error, hint) from error
    finally:
        temporary.unlink(missing_ok=True)


def read_document(
    path: Path, kind: type[T], schema: str, *, absent: str, damaged: str, is_older_read: bool = False
) -> T:
    """Read a JSON file that carries its schema.

    Parameters
    ----------
    path : Path
        The file.
    kind : type
        What it holds.
    schema : str
        Schema it must carry, ``name/number``.
    absent, damaged : str
        The next step where it does not exist, and where it cannot be used.
    is_older_read : bool
        Whether a schema of the same name with a lower number is read as well: it has fewer fields.

    Raises
    ------
    DataError
        If the file is absent, cannot be read, is damaged or of another schema. A newer schema is
        named as such, whatever else is different in the file.
    """
    from pydantic import ValidationError  # noqa: PLC0415 - start-up time

    content = _bytes_of(path, absent=absent)
    if _ends_with(schema, content) and not _may_have_half(content):
        try:
            # Of many cells this takes half of the time and memory.
            whole = _adapter(kind).validate_json(content)
        except ValidationError:
            pass  # what is wrong is said below, in our words
        else:
            if whole.schema == schema:
                return cast("T", whole)
    value = _content(path, content, schema, damaged=damaged)
    found = value.get("schema") if isinstance(value, dict) else None
    if not isinstance(found, str):
        message = f"`{path}` is not of schema `{schema}`: it carries no schema"
        raise DataError(message, hint=damaged, code="data.schema")
    if found != schema and not (is_older_read and is_older_schema(found, schema)):
        message = f"`{path}` has schema `{found}`; this version reads `{schema}`"
        is_other_version = found.rpartition("/")[0] == schema.rpartition("/")[0]
        raise DataError(message, hint=OTHER_VERSION_HINT if is_other_version else damaged, code="data.schema")
    try:
        return cast("T", _adapter(kind).validate_python(value))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        message = f"`{path}` is not of schema `{schema}`: `{place}`: {first['msg']}"
        raise DataError(message, hint=damaged, code="data.schema") from error


def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    """Give what checks a kind of document; making it takes longer than most documents do."""
    from pydantic import TypeAdapter  # noqa: PLC0415 - start-up time

    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]


def is_older_schema(found: str, schema: str) -> bool:
    """Whether a schema has the same name and a lower number.

    Examples
    --------
    >>> is_older_schema("steelyard/plan/1", "steelyard/plan/2")
    True
    """
    (name, _, number), (own, _, highest) = found.rpartition("/"), schema.rpartition("/")
    return name == own and number.isdecimal() and 0 < int(number) < int(highest)


def read_once(read: Callable[[Path], T]) -> Callable[[Path], T]:
    """Let a reader of documents give a large one that somebody still holds, if its file has not changed."""

    @wraps(read)
    def held_or_read(path: Path) -> T:
        try:
            found = path.stat()
        except OSError:
            return read(path)
        if found.st_size < _LARGE_BYTES:
            return read(path)
        key = (read, str(path), found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
        document = _HELD.get(key)
        if document is None:
            document = _HELD[key] = read(path)
        return cast("T", document)

    return held_or_read


def _ends_with(schema: str, content: bytes) -> bool:
    """Whether a document, if it is JSON, names its schema last or before texts alone: at its top level."""
    # What stands deeper has another bracket behind it. A document may have a default for a schema it lacks.
    last = rb'[\s,{]"schema":\s*"%s"\s*(,\s*"[^"\\]*":\s*"[^"\\]*"\s*)*\}\s*\Z' % re.escape(schema).encode()
    return re.search(last, content[-_LAST_BYTES:]) is not None


def _may_have_half(content: bytes) -> bool:
    # Most have neither sign, which is found faster than the pattern.
    return (b"\\u" in content or b"\xed" in content) and _HALF.search(content) is not None


def _bytes_of(path: Path, *, absent: str) -> bytes:
    try:
        return read_plain_file(path)
    except FileNotFoundError as error:
        message = f"`{path}` does not exist"
        raise DataError(message, hint=absent, code="data.absent") from error
    except OSError as error:
        message = f"cannot read `{path}`: {error.strerror}"
        raise DataError(message, hint=absent, code="data.absent") from error


def _content(path: Path, content: bytes, schema: str, *, damaged: str) -> Any:
    try:
        value = json.loads(content)
        if _may_have_half(content):
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        message = f"`{path}` is not of schema `{schema}`: {_reason(error)}"
        raise DataError(message, hint=damaged, code="data.corrupt") from error
    return value


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "its lists or objects are nested too deeply"
    if isinstance(error, UnicodeEncodeError):
        return "it contains half of a character (an unpaired surrogate of Unicode), which text cannot hold"
    return f"not JSON: {' '.join(str(error).split())[:_SHOWN_CHARACTERS]}"
