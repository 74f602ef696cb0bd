"""Reading the JSON files of a result folder: the schema first, then the content."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from steelyard.errors import DataError
from steelyard.model.plain_file import read_plain_file

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import TypeAdapter

T = TypeVar("T")

_HALF: Final = re.compile(rb"\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]")
"""How a file may spell half of a pair that stands for one character, alone or with its other half."""

_ADAPTERS: Final[dict[type[Any], TypeAdapter[Any]]] = {}
_SHOWN_CHARACTERS: Final = 160
FOLDER_HINT: Final = "give the folder that `steelyard run`, `steelyard compare` or `steelyard import` wrote"
OTHER_VERSION_HINT: Final = "use the Steelyard that wrote it, or a newer one"


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

    content = _content(path, schema, absent=absent, damaged=damaged)
    found = content.get("schema") if isinstance(content, dict) else None
    if not isinstance(found, str):
        message = f"`{path}` is not of schema `{schema}`: it carries no schema"
        raise DataError(message, hint=damaged, code="data.schema")
    if found != schema and not (is_older_read and is_older_schema(found, schema)):
        message = f"`{path}` has schema `{found}`; this version reads `{schema}`"
        is_other_version = found.rpartition("/")[0] == schema.rpartition("/")[0]
        raise DataError(message, hint=OTHER_VERSION_HINT if is_other_version else damaged, code="data.schema")
    try:
        return cast("T", _adapter(kind).validate_python(content))
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


def _content(path: Path, schema: str, *, absent: str, damaged: str) -> Any:
    try:
        content = read_plain_file(path)
        value = json.loads(content)
        if _HALF.search(content):
            json.dumps(value, ensure_ascii=False).encode()
    except FileNotFoundError as error:
        message = f"`{path}` does not exist"
        raise DataError(message, hint=absent, code="data.absent") from error
    except OSError as error:
        message = f"cannot read `{path}`: {error.strerror}"
        raise DataError(message, hint=absent, code="data.absent") from error
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
